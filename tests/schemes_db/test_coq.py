"""The Coq export: coqc accepts the proofs of right schemes and refuses those of wrong ones."""

import re
import shutil
import subprocess

import numpy as np
import pytest

import lcma
from lcma.schemes_db.formats import render
from lcma.schemes_db.scheme import Scheme

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="coqc is not installed")


def coqc(text, folder):
    path = folder / "scheme.v"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return subprocess.run(["coqc", str(path)], capture_output=True, text=True, timeout=60, cwd=folder)


def accepted(text, folder):
    done = coqc(text, folder)
    return done.returncode == 0 and "Closed under the global context" in done.stdout


@needs_coq
@pytest.mark.parametrize("name", [
    "strassen", pytest.param("naive:2x3x1", marks=pytest.mark.slow), pytest.param("laderman", marks=pytest.mark.slow),
    pytest.param("4x4x4-r49", marks=pytest.mark.slow), pytest.param("5x5x5-r93", marks=pytest.mark.slow),
    pytest.param("eca-stage1", marks=pytest.mark.slow), pytest.param("eca-stage2", marks=pytest.mark.slow),
])  # fmt: skip
def test_coqc_accepts(name, tmp_path):
    assert accepted(render(lcma.resolve(name)[0], "coq"), tmp_path)


@needs_coq
@pytest.mark.slow
def test_coqc_accepts_fractions(tmp_path):
    scheme = lcma.resolve("strassen")[0]
    halved = Scheme.from_arrays(
        scheme.target, scheme.u.dense, 2 * scheme.v.dense, scheme.w.dense, lcma.parse_ring("Q"), denominators=(2, 1, 1)
    )
    text = render(halved, "coq").decode()
    assert "Definition one : Z := 2." in text
    assert accepted(text, tmp_path)


def corrupted(text, count, seed=0):
    """The text with one coefficient of a product changed, so many times."""
    end = text.index("Definition inner")
    places = [match for match in re.finditer(r"\(\d+, \d+, (-?\d+)\)", text) if match.end() < end]
    for at in np.random.default_rng(seed).choice(len(places), count, replace=False):
        start, stop = places[at].span(1)
        yield text[:start] + str(int(text[start:stop]) + 1) + text[stop:]


@needs_coq
def test_coqc_refuses_a_changed_coefficient(tmp_path):
    (wrong,) = corrupted(render(lcma.resolve("strassen")[0], "coq").decode(), 1)
    done = coqc(wrong, tmp_path)
    assert done.returncode != 0
    assert "Unable to unify" in done.stderr


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize("name", ["strassen", "eca-stage1"])
def test_coqc_refuses_ten_changed_coefficients(name, tmp_path):
    for wrong in corrupted(render(lcma.resolve(name)[0], "coq").decode(), 10, seed=1):
        assert coqc(wrong, tmp_path).returncode != 0

"""Every public object says what it is in one short line, and the main ones in HTML for a notebook."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import lcma
from lcma.schemes_db.display import LIMIT, line, table
from lcma.schemes_db.formats import lcma_json

from .workbench.pages import Page

SQUARE = np.ones((8, 8), np.float32)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("schemes") / ("long" * 40 + ".json")
    scheme = lcma.resolve("strassen")[0]
    path.write_text(lcma_json.render(scheme))
    path.with_name("wrong.json").write_text(lcma_json.render(scheme.replace(w=scheme.u)))
    return path


@pytest.fixture(scope="module")
def shown(file):
    """One object of every public class, and what public functions return, by name."""
    scheme, certificate = lcma.resolve("5x5x5")
    wide = lcma.Target.general(40, 40, 40)
    program = lcma.program_of(scheme)
    return {
        "BitMatrix": lcma.BitMatrix.random(100, 100, seed=1),
        "Catalog": lcma.Catalog.in_memory(),
        "Certificate": certificate,
        "Prepared": lcma.Prepared(SQUARE, 100, "strassen"),
        "Program": program,
        "Provenance": lcma.Provenance("paper", "a source " * 90),
        "Ring": lcma.parse_ring("Z1048573"),
        "Scheme": scheme,
        "Target": wide,
        "AccelerateConfig": lcma.AccelerateConfig(),
        "CompressConfig": lcma.CompressConfig("monarch"),
        "factor": scheme.u,
        "proof": lcma.certify(scheme, ("randomized",)).proofs[0],
        "plan": lcma.plan(SQUARE, SQUARE, "strassen", levels=2),
        "candidate": lcma.plan(SQUARE, SQUARE, "strassen").candidate,
        "request": lcma.plan(SQUARE, SQUARE).request,
        "check": lcma.check(scheme),
        "check_program": lcma.check_program(program),
        "check_traced": lcma.check_traced(lambda a, b: a, lcma.parse_target("2x2x2")),
        "find": lcma.find("2x2x2", rank=7, seed=1, walks=4, steps=1000, rounds=1),
        "lift": lcma.lift(lcma.resolve("4x4x4-r47-mod2")[0]),
        "read_file": lcma.read_file(file)[0],
        "verify_file": lcma.verify_file(file)[0],
        "wrong": lcma.verify_file(file.with_name("wrong.json"))[0],
        "row": next(iter(lcma.Catalog.in_memory().entries())),
        "kronecker": lcma.kronecker.dft(64).matrix,
        "Fourier": lcma.kronecker.dft(4096),
        "chain": lcma.kronecker.KroneckerSparse(lcma.kronecker.kaleidoscope(1 << 20)),
        "block low-rank": lcma.block_low_rank.Monarch(64, 64, 4, 4, 2),
        "tensor": lcma.tensor(scheme, scheme),
    }


def test_every_object_is_one_short_line(shown):
    for name, value in shown.items():
        assert 0 < len(repr(value)) <= LIMIT + 10, (name, repr(value))
        assert repr(value).isprintable(), name
        assert "object at 0x" not in repr(value), name
    classes = {name for name in lcma.__all__ if inspect.isclass(getattr(lcma, name))}
    left = {name for name in classes if not issubclass(getattr(lcma, name), Exception)} - set(shown)
    layers = {"BlastLinear", "FastLinear", "KSFeedForward", "KSLinear", "LowRankLinear", "MonarchLinear"}
    assert left == layers  # torch prints a module over several lines
    for name, value in shown.items():
        assert name not in classes or type(value) is getattr(lcma, name)


def test_a_layer_prints_no_numbers():
    torch = pytest.importorskip("torch")
    layers = [
        lcma.BlastLinear(64, 64, 4, 2),
        lcma.FastLinear(64, 64),
        lcma.KSLinear((2, 3, 4, 5)),
        lcma.KSFeedForward((2, 3, 4, 5), (2, 4, 3, 5)),
        lcma.LowRankLinear(64, 64, 2),
        lcma.MonarchLinear(64, 64, 4, 2),
    ]
    for layer in layers:
        assert isinstance(layer, torch.nn.Module)
        assert max(map(len, repr(layer).splitlines())) <= LIMIT


def test_a_line_is_cut_and_holds_no_control_characters():
    assert line("a\tb\n c\x1b[31m") == "<a b c?[31m>"
    assert len(line("x" * 99)) == LIMIT
    assert line("x" * 99).endswith("...>")
    assert line("x" * 98) == f"<{'x' * 98}>"


@pytest.mark.parametrize(
    "name",
    [
        *("Scheme", "Certificate", "plan", "verify_file", "wrong", "tensor"),
        *("kronecker", "Fourier", "chain", "block low-rank"),
    ],
)
def test_a_notebook_shows_balanced_html(shown, name):
    page = Page(shown[name]._repr_html_())
    assert page.of("table")
    assert not page.of("script")


def test_the_pictures_have_every_coefficient_and_texts_are_escaped(strassen):
    page = strassen.replace(name="<script>")._repr_html_()
    assert "<script>" not in page
    assert page.count("<rect") == sum(len(factor.values) for factor in strassen.factors)
    assert "Shown are" not in page
    cut = lcma.tensor(strassen, lcma.tensor(strassen, strassen))._repr_html_()
    assert re.search(r"Shown are \d\d of 343 products and 50 of 64 blocks of C\.", cut)
    assert "&lt;b&gt;" in table("<b>", ["<b>"], [["<b>"]])
    assert "<b>" not in table("<b>", ["<b>"], [["<b>"]])

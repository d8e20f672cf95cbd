import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lcma
from lcma.errors import LcmaError, SchemeFormatError
from lcma.schemes_db import Q, Z
from lcma.schemes_db.formats import FORMATS, WRITERS, lcma_json, read_file, registry, render
from lcma.schemes_db.scheme import Scheme

from ..refusal import refuses_with
from ..reports import reading_of, report_of

GENERAL = ["strassen", "laderman", "naive:2x3x4", "strassen*naive:1x2x3", "naive:1x11x2"]
STRUCTURED = ["eca-stage1", "eca-stage2", "naive:2x3x2:tri-out:upper"]


@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.parametrize("format_", [name for name in WRITERS if name in FORMATS])
def test_every_format_reads_back_what_it_writes(name, format_):
    scheme = lcma.resolve(name)[0]
    reading = reading_of(render(scheme, format_))
    assert reading.format == format_
    assert reading.scheme.digest == scheme.digest
    assert reading.scheme.target == scheme.target


@pytest.mark.parametrize("name", STRUCTURED)
def test_formats_that_know_structure_keep_it_and_the_others_are_given_it(name):
    scheme = lcma.resolve(name)[0]
    for format_ in ("lcma-json", "lcma-npz", "equations"):
        assert reading_of(render(scheme, format_)).scheme.digest == scheme.digest
    assert reading_of(render(scheme, "exp"), target=scheme.target).scheme.digest == scheme.digest


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_rational_schemes_round_trip(data):
    m, k, n, rank = (data.draw(st.integers(1, size)) for size in (3, 3, 3, 4))
    import numpy as np

    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    target = lcma.parse_target(f"{m}x{k}x{n}")
    arrays = [rng.integers(-3, 4, (rank, *kinds.shape)) for kinds in target.kind_arrays]
    scheme = Scheme.from_arrays(target, *arrays, Q, denominators=tuple(int(d) for d in rng.integers(1, 5, 3)))
    for format_ in ("lcma-json", "lcma-npz", "fmm-json", "equations", "maple"):
        assert reading_of(render(scheme, format_)).scheme.digest == scheme.digest


def test_unknown_fields_are_noted_and_a_foreign_certificate_is_dropped(strassen):
    data = lcma_json.to_json(strassen, lcma.certify(lcma.resolve("winograd")[0]))
    data["mood"] = "good"
    reading = reading_of(json.dumps(data))
    assert reading.certificate is None
    assert len(reading.notes) == 2


def test_too_large_a_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "MAX_FILE_BYTES", 10)
    (tmp_path / "large").write_text("x" * 11)
    refuses_with(SchemeFormatError, "larger than", read_file, tmp_path / "large")


@pytest.mark.parametrize("name", ["4x4x4-r47-mod2", "eca-stage1", "eca-stage2", "strassen"])
def test_exp_says_what_its_products_do_not(name):
    scheme = lcma.resolve(name)[0]
    text = render(scheme, "exp").decode()
    assert any(found == scheme for _, found in reading_of(text).candidates)
    assert text.startswith("# target: ") == (name != "strassen")


PUBLISHED = Path(__file__).parent / "published"


def changed_numbers(text, count):
    """The text with one number changed, `count` times another one of those that are coefficients."""
    found = list(re.finditer(r"(?<=[\[,])\d(?=[\],])|[ab]\d\d(?=[+\-)])", text))
    start, end = max(text.find("TriadSet"), 0), text.find("map(") % (len(text) + 1)
    found = [match for match in found if start <= match.start() < end]
    step = max(1, len(found) // count)
    for match in found[::step][:count]:
        old = match.group()
        new = str((int(old) + 1) % 10) if old.isdigit() else f"{old}+{old}"
        yield text[: match.start()] + new + text[match.end() :]


@pytest.mark.parametrize("name", ["2x3x4_tensor.mpl", "234-trilinear.txt"])
def test_published_dialects_are_proven_and_refused_with_a_number_changed(name):
    text = (PUBLISHED / name).read_text()
    report = report_of(text)
    assert (report.ok, report.scheme.rank, report.conventions) == (True, 20, ("C^T",))
    for wrong in changed_numbers(text, 12):
        assert not report_of(wrong, over=Z).ok


@pytest.mark.parametrize("suffix", sorted({format_.suffix for format_ in WRITERS.values()} - {".v"}))
def test_a_written_file_is_read_again(suffix, strassen, tmp_path):
    path, certificate = tmp_path / f"new{suffix}", lcma.certify(strassen)
    lcma.write_file(path, strassen, certificate)
    assert lcma.load(path)[0] == strassen
    if suffix in (".json", ".npz"):
        assert lcma.read_file(path)[0].certificate == certificate
    refuses_with(LcmaError, "exists; pass overwrite=True", lcma.write_file, path, strassen)
    lcma.write_file(str(path), lcma.naive(strassen.target), overwrite=True)
    assert lcma.load(path)[0].rank == 8

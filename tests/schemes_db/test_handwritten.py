"""Schemes as people write them: every spelling is read and proven, and none of them is once it is wrong."""

import json
import re
from pathlib import Path

import pytest

import lcma
from lcma.errors import SchemeFormatError
from lcma.schemes_db.formats import parse_text, read_file
from lcma.schemes_db.ring import Z
from lcma.verify import judge

from ..reports import proven, reading_of, report_of

HERE = Path(__file__).parent
MADE = sorted((HERE / "handwritten").iterdir())
DIALECTS = sorted((HERE / "dialects").iterdir())
"""Programs, documents and data files as they are met."""

FILES = MADE + DIALECTS
KNOWN = {lcma.resolve(n)[0].digest for n in ("strassen", "winograd", "laderman", "naive:2x2x2", "naive:2x3x4")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_spelling_is_proven(path):
    report = proven(path)
    assert not report.over_z2_only
    assert report.scheme.digest in KNOWN


def wrong_texts(text):
    """The text with one sign, block or number changed, in every formula line in turn."""
    for match in re.finditer(r"(?m)^.*[\d\u2080-\u2089].*$", text):
        line = match.group()
        for old, new in (("-", "+"), ("\u2212", "+"), ("+", "-"), ("\u2295", "\u2296"), (" 1", " 2"), ("1, ", "0, ")):
            if old in line:
                at = match.start() + line.rindex(old)
                yield text[:at] + new + text[at + len(old) :]


def readings_of(text):
    try:
        return parse_text(text)
    except SchemeFormatError:
        return []


@pytest.mark.parametrize("most", [2, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "path", [path for path in FILES if path.suffix not in (".npz", ".npy")], ids=lambda path: path.name
)
def test_no_spelling_is_accepted_with_a_fault(path, most):
    """Of so many faults at most, spread over the text."""
    text = path.read_bytes().decode()
    right = {report.scheme.digest for reading in read_file(path) if (report := judge(reading, "right")).ok}
    tried = 0
    wrongs = list(wrong_texts(text))
    for wrong in wrongs[:: -(-len(wrongs) // most) or 1]:
        for reading in readings_of(wrong):
            report = judge(reading, "wrong", ring=Z)
            # A fault in a heading or a comment changes nothing.
            assert not report.ok or report.scheme.digest in right, wrong
            tried += not report.ok
    assert tried or "heading" in path.name or path.suffix in (".json",)


def test_the_convention_that_was_verified_is_reported():
    report = report_of(HERE / "handwritten" / "columns.npz")
    assert report.conventions == ("C, products as columns",)
    assert any("products as columns" in note for note in report.notes)
    assert report_of(HERE / "handwritten" / "transposed_outputs.txt").conventions == ("C^T",)
    assert "indices count from 0" in report_of(HERE / "handwritten" / "zero_based.txt").notes


def test_every_reader_that_matched_is_reported():
    text = json.dumps({"u": [[1]], "v": [[1]], "w": [[1]]})
    assert not any("matched" in note for note in reading_of(text).notes)
    notes = reading_of("1\n#\n1\n#\n1\n").notes
    assert any(note.startswith("matched fast-matmul, arrays") for note in notes)

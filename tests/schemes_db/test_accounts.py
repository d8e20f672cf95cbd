"""Every token counts: a text is read only if each statement that names a block, a product or a factor is understood."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from lcma.errors import SchemeFormatError
from lcma.schemes_db.formats import parse_text
from lcma.schemes_db.resolve import resolve
from lcma.verify import judge

from ..refusal import read_beside, refuses_with
from ..reports import report_of

HERE = Path(__file__).parent
STRASSEN = resolve("strassen")[0]
TABLE = read_beside(__file__, "texts.toml")
TEXTS = {path.name: path.read_text() for name in ("triads.mpl", "bini.txt") for path in [HERE / "samples" / name]}
TEXTS |= {path.name: path.read_bytes().decode() for path in (HERE / "dialects").iterdir()}
TEXTS |= {"letters.txt": (HERE / "handwritten" / "letters.txt").read_text(), **TABLE["lines"], **TABLE["texts"]}
for (at, first), (to, last) in combinations(enumerate(TABLE["lines"]), 2):
    TEXTS[f"{first}-{last}"] = "\n".join([*list(TABLE["lines"].values())[at : to + 1], ""])
"""Files, and texts of Strassen's scheme."""


def filled(text):
    """The text with the content of each <name> in it."""
    return re.sub(
        r"<([\w.]+(?:-\w+)?)>", lambda found: filled(TEXTS[found[1]]) if found[1] in TEXTS else found[0], text
    )


def contents(verdict, *more):
    """Parametrize over the texts of this verdict in texts.toml, by the name of their group, and more that it says."""
    rows = [
        (row, of.replace("<>", case if isinstance(case, str) else case[0] * case[1]))
        for row in TABLE[verdict]
        for of in row.get("of", ["<>"])
        for case in row["cases"]
    ]
    cases = [
        pytest.param(filled(text), *map(row.get, more), id=f"{row['group']} {at}")
        for at, (row, text) in enumerate(rows)
    ]
    return pytest.mark.parametrize(("content", *more), cases)


def changes(verdict):
    """Parametrize over the changes of this verdict in texts.toml: a text, a part of it, and what replaces that."""
    rows = [
        (name, old, new)
        for name, parts in TABLE["changes"][verdict].items()
        for old, several in parts.items()
        for new in several
    ]
    return pytest.mark.parametrize(("name", "old", "new"), rows)


def refused(content):
    refuses_with(SchemeFormatError, ".", lambda: [judge(reading, "file") for reading in parse_text(content)])


@contents("refused")
def test_a_content_that_is_not_understood_as_a_whole_is_refused(content):
    refused(content)


@contents("proven", "ring")
def test_a_content_that_is_understood_is_proven(content, ring):
    scheme = report_of(content).scheme
    assert ring in (None, scheme.ring.name)
    assert scheme.digest == (STRASSEN.over_z2() if ring == "Z2" else STRASSEN).digest


@contents("refuted", "says")
def test_a_content_that_is_understood_and_wrong_is_refuted(content, says):
    report = report_of(content)
    assert not report.ok
    assert says is None or says in report.headline()


@changes("refused")
def test_a_change_of_what_a_text_means_is_refused(name, old, new):
    text = filled(f"<{name}>")
    assert old in text
    refused(text.replace(old, new, 1))


@changes("refuted")
def test_a_change_of_what_a_text_computes_is_refuted(name, old, new):
    text = filled(f"<{name}>")
    assert old in text
    assert not report_of(text.replace(old, new, 1)).ok


@changes("proven")
def test_another_spelling_of_the_same_is_proven(name, old, new):
    text = filled(f"<{name}>")
    assert old in text
    assert report_of(text.replace(old, new)).scheme.digest == report_of(text).scheme.digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((filled(text), message) for message, texts in TABLE["message"].items() for text in texts),
        ("m1 = " + "9" * 2000 + "*(a11)(b11)\nc11 = m1", "digits"),
        ("m1 = " + "(" * 5000 + "a11", "nested too deep|any known format"),
        ("{" * 40 + "1", "expected|too deep|any known"),
        ("t0:=i0;" + "t0:=2*t0;" * 9000 + "o0:=t0;\n#\no0:=i0;\n#\no0:=i0;", "beyond 2"),
        ('{"lcma_scheme": ' + "[" * 100_000, "nested too deep|not JSON"),
        ('{"lcma_scheme": ' + "9" * 5000 + "}", "not JSON"),
    ],
)
def test_text_that_is_no_scheme_is_refused_in_one_line_that_says_why(text, message):
    refuses_with(SchemeFormatError, message, parse_text, text)


@pytest.mark.parametrize("between", ["\n\n", "\n# next\n"])
def test_long_tables_are_read(between):
    tables = [filled(f"<{name}_TABLE>").replace("\n", " " * 4000 + "\n") for name in "UVW"]
    assert report_of(between.join(tables)).scheme == STRASSEN


def test_cells_without_end_are_refused_in_linear_time():
    line = f"[{'*'.join(f'a[{i},1]' for i in range(9_000))}]"
    refused(filled(f"<t1-t7>{line}\n"))
    refused(filled(f"<m1-c22>c11 = {line}\n"))

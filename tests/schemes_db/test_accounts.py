"""Every token counts: a text is read only if each statement that names a block, a product or a factor is understood."""

import re
import tomllib
from itertools import combinations
from pathlib import Path

import pytest

from lcma.errors import SchemeFormatError
from lcma.schemes_db.formats import parse_text
from lcma.schemes_db.resolve import resolve
from lcma.verify import judge

from ..refusal import refuses_with

HERE = Path(__file__).parent
STRASSEN = resolve("strassen")[0].digest
TABLE = tomllib.loads((HERE / "texts.toml").read_text(encoding="utf-8"))
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


def contents(verdict):
    """Parametrize over the texts of this verdict in texts.toml, each with the name of its group."""
    rows = [
        (row["group"], of.replace("<>", case))
        for row in TABLE[verdict]
        for of in row.get("of", ["<>"])
        for case in row["cases"]
    ]
    return pytest.mark.parametrize(
        "content", [pytest.param(filled(text), id=f"{group} {at}") for at, (group, text) in enumerate(rows)]
    )


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
    with pytest.raises(SchemeFormatError) as caught:
        [judge(reading, "file") for reading in parse_text(content)]
    assert "\n" not in str(caught.value)


@contents("refused")
def test_a_content_that_is_not_understood_as_a_whole_is_refused(content):
    refused(content)


@contents("proven")
def test_a_content_that_is_understood_is_proven(content):
    (reading,) = parse_text(content)
    assert judge(reading, "file").scheme.digest == STRASSEN


@changes("refused")
def test_a_change_of_what_a_text_means_is_refused(name, old, new):
    text = filled(f"<{name}>")
    assert old in text
    refused(text.replace(old, new, 1))


@changes("proven")
def test_another_spelling_of_the_same_is_proven(name, old, new):
    text = filled(f"<{name}>")
    assert old in text
    (reading,), (plain,) = parse_text(text.replace(old, new)), parse_text(text)
    assert judge(reading, name).scheme.digest == judge(plain, name).scheme.digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, message) for message, texts in TABLE["message"].items() for text in texts),
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
    (reading,) = parse_text(between.join(tables))
    assert judge(reading, "file").scheme.digest == STRASSEN


def test_outputs_in_other_places_than_their_matrix_says_are_refuted():
    (reading,) = parse_text(TEXTS["layout.tex"].replace(r"r & s \\ t & u", r"r & t \\ s & u"))
    assert not judge(reading, "file").ok


def test_what_adds_to_an_output_of_a_matrix_is_computed():
    matrix = "[c11, c12; c21, c22] = [m1 + m4 - m5 + m7, m3 + m5; m2 + m4, m1 - m2 + m3 + m6]"
    (reading,) = parse_text(filled(f"<m1-m7>{matrix}\nc11 += m1\n"))
    assert "product 1, c11 should be 1, not 2" in judge(reading, "file").headline()


def test_sizes_that_contradict_the_factors_are_named():
    for content in ('{<DATA>, "shape": [2, 2, 3]}', "<ARRAYS>shape = [2, 2, 3]\n"):
        with pytest.raises(SchemeFormatError, match="other sizes are said, but the factors are of 2x2x2:7"):
            parse_text(filled(content))


@pytest.mark.parametrize("returned", ["u, v, -w", "2*u, v, w", "(u, v, -w)", "u, v, [[-x for x in row] for row in w]"])
def test_a_function_that_returns_other_factors_refuses_the_file(returned):
    body = "def strassen():\n" + "".join(f"    {line}\n" for line in filled("<LISTS>").splitlines())
    (reading,) = parse_text(body + "    return u, v, w\n")
    assert judge(reading, "file").ok
    refused(body + f"    return {returned}\n")


def test_a_statement_without_end_is_refused_in_linear_time():
    refused("c11 = m1" + "+a11" * (1 << 15))
    refused("c11 = m1\n" + "+a11\n" * (1 << 15))
    refused(filled("<m1-c22>print(c11" + " += " * (1 << 15)))


@pytest.mark.parametrize("line", [
    "*".join(["((a11)*(b11) + (a12)*(b21))"] * 40) + "*(c11)", "(a11)" * 20_000,
    f"[{'*'.join(f'a[{i},1]' for i in range(9_000))}]",
], ids=["sums", "factors", "cells"])  # fmt: skip
def test_products_without_end_are_refused_in_linear_time(line):
    refused(filled(f"<t1-t7>{line}\n"))
    refused(filled(f"<m1-c22>c11 = {line}\n"))


@pytest.mark.parametrize("place", ["a[10000000000002][2]", "b[1][30000000000]", "c[70000000001][70000000001]"])
def test_a_block_far_outside_every_grid_is_refused_without_listing_the_blocks_before_it(place):
    a, b, c = (place if place[0] == name else f"{name}[1][1]" for name in "abc")
    refused(f"m1 = (a[2][2] + {a})*({b} - b[2][2])\nm2 = (a[1][2])*(b[2][1])\n{c} = m1 + m2\nc[2][2] = m1\n")


@pytest.mark.parametrize("lead", ["", "u = ", "u =", "# GF(2)\n"])
@pytest.mark.parametrize("unit", ["[", "[ ", '{"a":', "{'a':", " ", "\n", "%1", "//a=", "a=[", "<1|", "{{"])
def test_brackets_blanks_and_marks_without_end_are_refused_in_linear_time(lead, unit):
    refused(lead + unit * (1 << 15))


@pytest.mark.parametrize("tail", [
    "c[" * (1 << 15), f"c12 = c[{':' * (1 << 15)}", "fix(C)," * (1 << 12), f"c1|{'a1' * (1 << 15)},",
    "C" + "[0]" * (1 << 15),
], ids=["brackets", "slice", "calls", "row", "indices"])  # fmt: skip
def test_matrices_and_rows_without_end_are_looked_at_in_linear_time(tail):
    refused(filled(f"<m1-c22>{tail}\nc11 *= 2\n"))


UNPACKED = [
    f"{x}11, {x}12, {x}21, {x}22 = {x.upper()}[0][0], {x.upper()}[0][1], {x.upper()}[1][0], {x.upper()}[1][1]"
    for x in "ab"
]
LINES = filled("<m1-c22>").splitlines()
RETURNED = ["C = [[c11, c12], [c21, c22]]", "return C"]


def function(lines):
    return "\n    ".join(["def multiply(A, B):", *lines]) + "\n"


@pytest.mark.parametrize("more", [[], ["n, m = 2, 2"], ["print(C)"]])
def test_names_are_set_several_at_once(more):
    (reading,) = parse_text(function([*UNPACKED, *LINES, *more, *RETURNED]))
    assert judge(reading, "file").scheme.digest == STRASSEN


@pytest.mark.parametrize(
    "changed",
    [
        [*UNPACKED, *LINES, RETURNED[0], "C = 0", "return C"],
        [*UNPACKED, *LINES, RETURNED[0], "C = D", "return C"],
        [*UNPACKED, *LINES, RETURNED[0], "del C", "return C"],
        [*UNPACKED, *LINES, RETURNED[0], "del A, C", "return C"],
        [*UNPACKED, *LINES, "m1, m2 = m2, m1", *RETURNED],
        [*UNPACKED, *LINES, "c11, c12 = m3, m4", *RETURNED],
        ["a11, a12, a21, a22 = A[0][1], A[0][0], A[1][0], A[1][1]", UNPACKED[1], *LINES, *RETURNED],
    ],
)
def test_names_that_are_set_again_or_to_other_blocks_refuse_the_file(changed):
    with pytest.raises(SchemeFormatError):
        parse_text(function(changed))

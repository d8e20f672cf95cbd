"""Every token counts: a text is read only if each statement that names a block, a product or a factor is understood."""

import json

import pytest

from lcma.errors import SchemeFormatError
from lcma.schemes_db.formats import parse_text
from lcma.schemes_db.resolve import resolve
from lcma.verify import judge

from .account_cases import ARRAYS, DATA, LINES, LISTS, PRODUCTS, PROVEN, REFUSED, SUMS, TRILINEAR, text

STRASSEN = resolve("strassen")[0].digest


def cases(groups):
    """Parametrize over the contents of all groups, each with the name of its group."""
    named = [
        pytest.param(one, id=f"{group} {at}") for group, several in groups.items() for at, one in enumerate(several)
    ]
    return pytest.mark.parametrize("content", named)


def refused(content):
    with pytest.raises(SchemeFormatError) as caught:
        [judge(reading, "file") for reading in parse_text(content)]
    assert "\n" not in str(caught.value)


@cases(REFUSED)
def test_a_content_that_is_not_understood_as_a_whole_is_refused(content):
    refused(content)


@cases(PROVEN)
def test_a_content_that_is_understood_is_proven(content):
    (reading,) = parse_text(content)
    assert judge(reading, "file").scheme.digest == STRASSEN


def test_what_adds_to_an_output_of_a_matrix_is_computed():
    matrix = f"[c11, c12; c21, c22] = [{', '.join(SUMS[:2])}; {', '.join(SUMS[2:])}]"
    (reading,) = parse_text(text(*PRODUCTS, matrix, "c11 += m1"))
    assert "product 1, c11 should be 1, not 2" in judge(reading, "file").headline()


@pytest.mark.parametrize("first", ["[[[1]], [[1]], [[1]]]", "[[1, 0, 0, 1], [1, 0, 0, 1], [1, 0, 0, 1]]"])
def test_a_factor_is_no_scheme_by_itself_beside_others_that_are_no_matrices(first):
    with pytest.raises(SchemeFormatError, match=r"V has shape \(1,\)"):
        parse_text(f"U = {first}\nV = [1]\nW = [1]\n")


def test_sizes_that_contradict_the_factors_are_named():
    for content in (json.dumps(DATA | {"shape": [2, 2, 3]}), f"{ARRAYS}shape = [2, 2, 3]\n"):
        with pytest.raises(SchemeFormatError, match="other sizes are said, but the factors are of 2x2x2:7"):
            parse_text(content)


@pytest.mark.parametrize("returned", ["u, v, -w", "2*u, v, w", "(u, v, -w)", "u, v, [[-x for x in row] for row in w]"])
def test_a_function_that_returns_other_factors_refuses_the_file(returned):
    body = "def strassen():\n" + "".join(f"    {line}\n" for line in LISTS.splitlines())
    (reading,) = parse_text(body + "    return u, v, w\n")
    assert judge(reading, "file").ok
    refused(body + f"    return {returned}\n")


def test_a_statement_without_end_is_refused_in_linear_time():
    refused("c11 = m1" + "+a11" * (1 << 16))
    refused("c11 = m1\n" + "+a11\n" * (1 << 16))
    refused(text(*LINES, "print(c11" + " += " * (1 << 16)))


@pytest.mark.parametrize("line", [
    "*".join(["((a11)*(b11) + (a12)*(b21))"] * 40) + "*(c11)", "(a11)" * 20_000,
    f"[{'*'.join(f'a[{i},1]' for i in range(9_000))}]",
], ids=["sums", "factors", "cells"])  # fmt: skip
def test_products_without_end_are_refused_in_linear_time(line):
    refused(text(*TRILINEAR, line))
    refused(text(*LINES, f"c11 = {line}"))


@pytest.mark.parametrize("place", ["a[10000000000002][2]", "b[1][30000000000]", "c[70000000001][70000000001]"])
def test_a_block_far_outside_every_grid_is_refused_without_listing_the_blocks_before_it(place):
    a, b, c = (place if place[0] == name else f"{name}[1][1]" for name in "abc")
    refused(f"m1 = (a[2][2] + {a})*({b} - b[2][2])\nm2 = (a[1][2])*(b[2][1])\n{c} = m1 + m2\nc[2][2] = m1\n")


@pytest.mark.parametrize("lead", ["", "u = ", "u =", "# GF(2)\n"])
@pytest.mark.parametrize("unit", ["[", "[ ", '{"a":', "{'a':", " ", "\n", "%1", "//a=", "a=[", "<1|", "{{"])
def test_brackets_blanks_and_marks_without_end_are_refused_in_linear_time(lead, unit):
    refused(lead + unit * (1 << 16))


@pytest.mark.parametrize("tail", [
    "c[" * (1 << 16), f"c12 = c[{':' * (1 << 16)}", "fix(C)," * (1 << 12), f"c1|{'a1' * (1 << 16)},",
    "C" + "[0]" * (1 << 16),
], ids=["brackets", "slice", "calls", "row", "indices"])  # fmt: skip
def test_matrices_and_rows_without_end_are_looked_at_in_linear_time(tail):
    refused(text(*LINES, tail, "c11 *= 2"))


UNPACKED = [
    f"{x}11, {x}12, {x}21, {x}22 = {x.upper()}[0][0], {x.upper()}[0][1], {x.upper()}[1][0], {x.upper()}[1][1]"
    for x in "ab"
]
RETURNED = ["C = [[c11, c12], [c21, c22]]", "return C"]


@pytest.mark.parametrize("more", [[], ["n, m = 2, 2"], ["print(C)"]])
def test_names_are_set_several_at_once(more):
    content = text("def multiply(A, B):", *(f"    {line}" for line in [*UNPACKED, *LINES, *more, *RETURNED]))
    (reading,) = parse_text(content)
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
        parse_text(text("def multiply(A, B):", *(f"    {line}" for line in changed)))

"""Equations whose blocks are numbered in any way: numbering and target are found, a failure says what is near.

A paper that has algorithms among its prose is refused with the lines that each of them takes.
"""

import re

import pytest

import lcma
from lcma.errors import SchemeFormatError
from lcma.schemes_db.formats import parse_text, written
from lcma.schemes_db.ring import Z

from ..refusal import refuses_with
from ..reports import proven, report_of

ROWS = [(i, j) for i in range(4) for j in range(4)]
LOWER = [(i, j) for i, j in ROWS if i >= j]
COLUMNS = [(i, j) for j in range(4) for i in range(4)]
LOWER_BY_COLUMNS = [(i, j) for i, j in COLUMNS if i >= j]
PAPER = {"eca-stage1": ("QKS", ROWS, COLUMNS, LOWER), "eca-stage2": ("PVO", LOWER, ROWS, ROWS)}
"""Letters and numberings of blocks in the paper on exact causal attention, Algorithms 1 and 2."""

TARGETS = {"eca-stage1": "4x4x4:tri-out", "eca-stage2": "4x4x4:tri-left"}


def numbered(name, letters, *orders):
    """The equations of a shipped scheme with running indices: full products m1, ..., half products h1, ..."""
    scheme = lcma.resolve(name)[0]
    lines = [line for line in written.equations(scheme).splitlines() if not line.startswith("#")]
    for letter, own, order in zip("abc", letters, orders, strict=True):
        places = {f"{i + 1}{j + 1}": at for at, (i, j) in enumerate(order, 1)}
        lines = [
            re.sub(rf"\b{letter}(\d\d)\b", lambda m, own=own, at=places: f"{own}{at[m[1]]}", line) for line in lines
        ]
    return [re.sub(r"\bm(\d+)\b", lambda m: f"m{m[1]}" if int(m[1]) < 25 else f"h{int(m[1]) - 24}", x) for x in lines]


def paper(name):
    return numbered(name, *PAPER[name])


def as_latex(line):
    return re.sub(r"([A-Za-z])(\d+)", r"\1_{\2}", line)


def as_web_page(number, line):
    """A line of a web page of formulas: text without minus signs and blanks, then the LaTeX with colours."""
    left, right = line.split(" = ")
    parts = re.findall(r"\([^()]*\)", right) or [right]
    latex = r"\cdot".join(rf"\hbox{{\pagecolor{{red!15}}${as_latex(part)}$}}" for part in parts)
    echo = re.sub(r"[-() ]|\s", "", line).replace("*", "")
    return f"{number}:{echo}{as_latex(left)}={latex}"


def spellings(name):
    lines = paper(name)
    yield "plain", "\n".join(lines)
    yield "lower", "\n".join(lines).lower()
    yield (
        "latex",
        "\\begin{align*}\n" + " \\\\\n".join(as_latex(x).replace("=", "&=") for x in lines) + "\n\\end{align*}",
    )
    head = ["Algorithm 1 of the paper", r"1:Input: Any X,YLdX,Y\in\mathbb{R}^{L\times d}"]
    page = [as_web_page(at, line) for at, line in enumerate(lines, 3)]
    page[23] += " 24 multiplications"
    yield "web page", "\n".join([*head, *page, "47:return SS"])


CASES = [(name, how) for name in PAPER for how in ("plain", "lower", "latex", "web page")]


@pytest.mark.parametrize(("name", "how"), CASES)
@pytest.mark.parametrize("asked", [False, True])
def test_the_papers_own_numbering_is_found(name, how, asked):
    target = lcma.parse_target(TARGETS[name]) if asked else None
    report = proven(dict(spellings(name))[how], target=target)
    assert report.scheme == lcma.resolve(name)[0]
    assert report.scheme.target.name == TARGETS[name]


@pytest.mark.parametrize("name", PAPER)
def test_a_formula_of_a_web_page_whose_text_has_another_sign_is_refused(name):
    page = dict(spellings(name))["web page"]
    echo = re.search(r"(?m)^\d+:m1=[^+\\]*\+", page)
    refuses_with(SchemeFormatError, ".", parse_text, f"{page[: echo.end() - 1]}-{page[echo.end() :]}")


@pytest.mark.parametrize("orders", [
    (ROWS, ROWS, LOWER), (COLUMNS, ROWS, LOWER_BY_COLUMNS), (COLUMNS, COLUMNS, LOWER),
    (ROWS, COLUMNS, LOWER_BY_COLUMNS),
])  # fmt: skip
def test_every_numbering_of_rows_columns_and_triangles_is_tried(orders):
    assert proven("\n".join(numbered("eca-stage1", "XYZ", *orders))).scheme == lcma.resolve("eca-stage1")[0]


@pytest.mark.parametrize("name", ["eca-stage1", "eca-stage2"])
def test_a_triangular_target_is_found_from_the_blocks_that_occur(name):
    scheme = lcma.resolve(name)[0]
    text = "\n".join(line for line in written.equations(scheme).splitlines() if not line.startswith("#"))
    assert proven(text).scheme == scheme
    report = report_of(text, target=lcma.parse_target("4x4x4"))
    assert not report.ok
    assert report.headline().endswith(f"; holds as {TARGETS[name]}")
    products = "\n".join(line for line in written.exp(scheme).splitlines() if not line.startswith("#"))
    assert report_of(products).scheme == scheme


def test_a_general_scheme_without_an_output_is_no_triangular_one(strassen):
    lines = [line for line in written.equations(strassen).splitlines() if not line.startswith("c12")]
    report = report_of("\n".join(line for line in lines if not line.startswith("#")))
    assert not report.ok
    assert report.scheme.target.name == "2x2x2"


@pytest.mark.parametrize("name", PAPER)
def test_another_target_is_refuted_with_the_one_that_holds(name):
    text = "\n".join(paper(name))
    report = report_of(text, target=lcma.parse_target("4x4x4"))
    assert not report.ok
    assert report.headline().endswith(f"; holds as {TARGETS[name]}")
    other = {"eca-stage1": "4x4x4:tri-left", "eca-stage2": "4x4x4:tri-out"}[name]
    message = f"it holds as {TARGETS[name]}"
    refuses_with(SchemeFormatError, message, parse_text, text, target=lcma.parse_target(other))


@pytest.mark.parametrize("name", PAPER)
def test_a_wrong_coefficient_is_named(name):
    lines = paper(name)
    at = next(at for at, line in enumerate(lines) if " + " in line.split("=")[1])
    lines[at] = lines[at].replace(" + ", " + 3*", 1)
    report = report_of("\n".join(lines), over=Z)
    assert not report.ok
    assert report.scheme.target.name == TARGETS[name]
    assert f"; one coefficient from right: product {at + 1}, " in report.headline()
    assert report.headline().endswith(" should be 1, not 3")
    assert report.to_json()["nearest"] == report.hint


PROSE = "Algorithm {} is cheap.\nIts cost is S = T(n) for a matrix of order n, as we show below."


def text(ends):
    """Both algorithms with numbered lines between prose; each ends with `return`, or with its last equation."""
    parts = [PROSE.format(1)]
    for number, name in enumerate(TARGETS, 1):
        equations = [f"{at}:{line}" for at, line in enumerate(paper(name), 1)]
        parts += [f"Algorithm {number} Stage {number}", *equations, *(["99:return X"] if ends else [])]
    return "\n".join([*parts, "", "Results", "", "We measure both. The time is t = f(n) here.", PROSE.format(2)])


@pytest.mark.parametrize("ends", [True, False])
def test_the_lines_that_a_refusal_names_hold_the_algorithms(ends):
    whole = text(ends)
    with pytest.raises(SchemeFormatError, match=r"Algorithm 1 in lines 3-\d+, Algorithm 2 in lines") as refused:
        parse_text(whole)
    named = re.findall(r"in lines (\d+)-(\d+)", str(refused.value))
    lines = whole.splitlines()
    for (first, last), target in zip(named, TARGETS.values(), strict=True):
        assert str(proven("\n".join(lines[int(first) - 1 : int(last)])).scheme.target) == target


def test_a_fault_within_the_only_algorithm_is_named_alone():
    lines = ["Algorithm 1 Stage 1", *paper("eca-stage1")]
    lines.insert(5, "s1 = mask(q1)")
    with pytest.raises(SchemeFormatError) as refused:
        parse_text("\n".join(lines))
    assert refused.value.line == 6
    assert "cut out" not in str(refused.value)


def test_a_refusal_of_a_text_without_headings_is_unchanged():
    with pytest.raises(SchemeFormatError) as refused:
        parse_text("m1 = a11*b11\nm1 = a11*b11\nc11 = m1")
    assert "is set twice" in str(refused.value)
    assert "cut out" not in str(refused.value)

"""A paper that has algorithms among its prose is refused with the lines that each of them takes."""

import re

import pytest

from lcma.errors import SchemeFormatError
from lcma.schemes_db.formats import parse_text
from lcma.verify import judge

from .test_numbering import TARGETS, paper

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
        (reading,) = parse_text("\n".join(lines[int(first) - 1 : int(last)]))
        report = judge(reading, "file")
        assert report.ok
        assert str(report.scheme.target) == target


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

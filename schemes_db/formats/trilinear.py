"""Kauers and Moosbauer's .exp: one product a line, `(a11+a22)*(b11+b22)*(c11+c22)`, C transposed.

The third factor names blocks of the dual of C, so that the scheme is the trilinear form sum a_ij b_jk c_ki. Factors may
lack parentheses, a line may start with a sign and end in `/3`. A whole product may stand in parentheses, and several
may be added up. A product that ends in `cyclic` stands for its three rotations unless its factors are equal.
"""

from __future__ import annotations

from .account import Equation
from .patterns import pattern

_CYCLIC = pattern(r"(?i)[\s,;(+]*\b(?:cyc(?:lic(?:ally)?)?(?:\s+perm\w*)?|[zc]_?3)\b[\s).]*$")
CYCLIC = pattern(r"(?i)\W*(?:(?:sum|over|and|plus|all|the|their|its)\s+)*cyc\w*(?:\s+(?:perm|rot)\w*)?\W*")
"""A line that says no more than that the products before it are cyclic."""

_BLOCK = pattern(r"(?i)([abcxyz])\W?_?\d")
_EPSILON = pattern(r"\beps(?:ilon)?\b")
_WORD = pattern(r"[A-Za-z]{3}")
_TRACE = pattern(r"(?i)^\s*tr(?:ace)?\s*\([\sabc*]+\)\s*=")
_NAMED = pattern(r"\s*(?:[A-Za-z]\w{0,12}|[A-Za-z]\[\d+\])\s*[:+]?\s*")
_MARK = 40
"""Characters at the end of a statement in which it may say that it is cyclic."""


def split_product(line: int, text: str) -> Equation | None:
    """The sum of products of three factors that a statement is: blocks of three matrices in order; None for others."""
    statement = _TRACE.sub("", text)
    shorter = statement[:-_MARK] + _CYCLIC.sub("", statement[-_MARK:])
    name, _, value = shorter.rpartition("=")
    if (name and not _NAMED.fullmatch(name)) or _WORD.search(_EPSILON.sub("", shorter)):
        return None
    zero = not name and "(0)" in value and value.count("*") + value.count(")(") > 1
    blocks = "".join(_BLOCK.findall(value)).lower()
    for order in ("abc", "xyz"):
        letters = iter(blocks)
        if zero or all(letter in letters for letter in order):
            return Equation(line, "", [value], third=True, cyclic=shorter != statement)
    return None

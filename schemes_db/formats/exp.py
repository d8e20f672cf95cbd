"""Kauers and Moosbauer's .exp: one product a line, `(a11+a22)*(b11+b22)*(c11+c22)`, C transposed.

The third factor names blocks of the dual of C, so that the scheme is the trilinear form
sum a_ij b_jk c_ki. Factors may lack parentheses, a line may start with a sign and end in `/3`.
A whole product may stand in parentheses, and several may be added up. A product that ends in `cyclic`,
or every one of a file that says `SYMMETRY: 3`, stands for its three rotations unless its factors are
equal. Comments start with `#`; those of a `header` are read, and written for targets that are not general.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from functools import lru_cache

from ...errors import SchemeFormatError
from ..inexact import Coefficient
from ..ring import Ring
from ..scheme import MAX_RANK
from ..target import Target
from .arithmetic import LinearForm, Products, times, unit_in_formulas
from .candidates import reading_of_terms
from .dense import on_line
from .header import parse_header
from .lines import controlled_lines, statements
from .naming import letters_of, place_of
from .patterns import changes_something, pattern
from .reading import C_TRANSPOSED, Reading, Term, UnknownFormatError
from .syntax import Meaning, Parser, Value, described

Factor = tuple[tuple[tuple[str, int, int], Coefficient], ...]
"""The blocks, by letter, row and column, and their coefficients."""

Factors = tuple[Factor, ...]

NAME = "exp"
SUFFIX = ".exp"
CONVENTION = C_TRANSPOSED

_CYCLIC = pattern(r"(?i)[\s,;(+]*\b(?:cyc(?:lic(?:ally)?)?(?:\s+perm\w*)?|[zc]_?3)\b[\s).]*$")
_BLOCKS = tuple(tuple(pattern(rf"(?i){letter}\W?_?\d") for letter in letters) for letters in ("abc", "xyz"))
_EPSILON = pattern(r"\beps(?:ilon)?\b")
_NAMED = pattern(r"\s*(?:[A-Za-z]\w{0,12}|[A-Za-z]\[\d+\])\s*[:+]?\s*")
_THREE = "expected three factors, as in (a11+a22)*(b11+b22)*(c11+c22)"
_MARK = 40
"""Characters at the end of a statement in which it may say that it is cyclic."""


class _Trilinear(Meaning):
    """Names are blocks by letter, row and column; products of linear forms are not expanded."""

    zero = LinearForm()

    def named(self, name: str) -> Value:
        return _block(name)

    def multiplied(self, left: Value, right: Value) -> Products:
        pair = [*_factors(left), *_factors(right)]
        if len(pair) != 2:
            raise SchemeFormatError("a product of sums where a sum of blocks belongs")
        (x, c), (y, d) = pair
        return Products({_at_most_three(*x, *y): times(c, d)})


@lru_cache(maxsize=1 << 12)
def _block(name: str) -> Value:
    unit = unit_in_formulas(name)
    return LinearForm({(letters_of(name), *place_of(name)): 1}) if unit is None else unit


def _at_most_three(*factors: Factor) -> Factors:
    if len(factors) > 3:
        raise SchemeFormatError(_THREE)
    return factors


def _factors(value: Value) -> list[tuple[Factors, Coefficient]]:
    if not isinstance(value, LinearForm):
        raise SchemeFormatError(f"a sum of blocks expected, not {described(value)}")
    return list(value.items()) if isinstance(value, Products) else [((tuple(value.items()),), 1)]


def sniff(text: str) -> bool:
    """Return whether some line is a product with blocks of three matrices in it."""
    return any(_is_trilinear(statement) for _, statement in statements(text[:40_000]))


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read one scheme; both conventions become candidates where the sizes allow both.

    Raises:
        SchemeFormatError: with the line.
    """
    header = parse_header(text)
    target, ring = target or header.target, ring or header.ring
    skipped: list[int] = []
    listed = list(_products(text, skipped))
    if not listed:
        raise UnknownFormatError("no products here")
    blocks = {block for _, factors, _, _ in listed for factor in factors for block, _ in factor}
    letters = "xyz" if blocks and {letter for letter, *_ in blocks} <= set("xyz") else "abc"
    base = int(all(row and col for _, row, col in blocks))
    rows: tuple[list[list[Term]], list[list[Term]], list[list[Term]]] = ([], [], [])
    for line, factors, scalar, cyclic in listed:
        terms = []
        for letter, factor in zip(letters, factors, strict=True):
            if wrong := [f"{block[0]}{block[1]}{block[2]}" for block, _ in factor if block[0] != letter]:
                raise SchemeFormatError(f"{wrong[0]} is not a block of {letter.upper()}", line=line)
            scale = scalar if letter in "cz" else 1
            terms.append([(row - base, col - base, times(value, scale)) for (_, row, col), value in factor])
        for turn in range(3 if cyclic and not terms[0] == terms[1] == terms[2] else 1):
            for slot in range(3):
                rows[slot].append(terms[(slot + turn) % 3])
    reading = reading_of_terms(NAME, *rows, CONVENTION, target, ring)
    rotated = sum(cyclic for *_, cyclic in listed)
    notes = [] if base else ["indices count from 0"]
    notes += [f"lines that are no products were skipped: {', '.join(map(str, skipped[:5]))}"] if skipped else []
    notes += [f"{rotated} products stand for their three rotations"] if rotated else []
    return [dataclasses.replace(reading, notes=tuple(notes), declared=ring)]


def _products(text: str, skipped: list[int]) -> Iterator[tuple[int, Factors, Coefficient, bool]]:
    """Every product of a text: its line, its three factors, the number before it, and whether it stands for its
    rotations; lines of prose are added to `skipped`.
    """
    symmetric, controlled, count = _is_symmetric(text), controlled_lines(text), 0
    for line, statement in statements(text):
        with on_line(line):
            if _is_prose(statement):
                if changes_something(statement) and (_mentions(statement) or not re.search(r"\w", statement)):
                    raise SchemeFormatError(f"{statement[:40]!r} is no product and no prose")
                skipped.append(line)
                continue
            if line in controlled:
                raise SchemeFormatError("a product in a loop or under a condition")
            shorter = _shortened(statement)
            name, sign, right = shorter.partition("=")
            if sign and not _NAMED.fullmatch(name):
                raise SchemeFormatError(f"{name[:30]!r} before a product is not understood")
            value = Parser(right if sign else shorter, _Trilinear()).whole()
            for factors, scalar in _factors(value):
                if len(factors) < 3:
                    raise SchemeFormatError(_THREE)
                yield line, factors, scalar, symmetric or shorter != statement
                count += 1
            if count > MAX_RANK:
                raise SchemeFormatError(f"more than {MAX_RANK} products")


def _is_symmetric(text: str) -> bool:
    """Return whether the text says that all of its products stand for their rotations."""
    return re.search(r"(?mi)^\W*symmetry:?\s*3\b", text) is not None


def _is_trilinear(statement: str) -> bool:
    if not re.search(r"[*(]", statement) and len(re.split(r"[\s,;|]+", statement)) > 3:
        return False  # the head of a table
    for blocks in _BLOCKS:
        at = 0
        for block in blocks:
            found = block.search(statement, at) if at >= 0 else None
            at = found.end() if found else -1
        if at >= 0:
            return not _is_prose(statement)
    return False


def _shortened(statement: str) -> str:
    """A statement without a mark at its end that it is cyclic."""
    return statement[:-_MARK] + _CYCLIC.sub("", statement[-_MARK:])


def _is_prose(statement: str) -> bool:
    """Return whether a statement says something in words."""
    words = re.search(r"[A-Za-z]{3}", _EPSILON.sub("", _shortened(statement)))
    return words is not None or not re.search(r"\d", statement)


def _mentions(statement: str) -> bool:
    """Return whether a statement names a block."""
    return any(block.search(statement) for blocks in _BLOCKS for block in blocks)

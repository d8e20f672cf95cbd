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

from ...errors import SchemeFormatError
from ..ring import Ring
from ..target import Target
from .account import Account
from .arithmetic import LinearForm
from .candidates import reading_by_place
from .dense import on_line
from .formulas import Formulas
from .header import parse_header
from .lines import controlled_lines, statements
from .naming import letters_of
from .patterns import pattern
from .reading import C_TRANSPOSED, Entries, Reading, UnknownFormatError
from .syntax import Parser, scaled

NAME = "exp"
SUFFIX = ".exp"
CONVENTION = C_TRANSPOSED

_CYCLIC = pattern(r"(?i)[\s,;(+]*\b(?:cyc(?:lic(?:ally)?)?(?:\s+perm\w*)?|[zc]_?3)\b[\s).]*$")
_BLOCK = pattern(r"(?i)([abcxyz])\W?_?\d")
_EPSILON = pattern(r"\beps(?:ilon)?\b")
_WORD = pattern(r"[A-Za-z]{3}")
_TRACE = pattern(r"(?i)^\s*tr(?:ace)?\s*\([\sabc*]+\)\s*=")
_NAMED = pattern(r"\s*(?:[A-Za-z]\w{0,12}|[A-Za-z]\[\d+\])\s*[:+]?\s*")
_MARK = 40
"""Characters at the end of a statement in which it may say that it is cyclic."""


def sniff(text: str) -> bool:
    """Return whether some line is a product with blocks of three matrices in it."""
    if re.match(r"\s*[{\[]\s*\"", text):
        return False
    return any(_is_trilinear(statement) for _, statement in statements(text[:40_000]))


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read one scheme; both conventions become candidates where the sizes allow both.

    Raises:
        SchemeFormatError: with the line.
    """
    said, over, _ = parse_header(text)
    target, ring = target or said, ring or over
    found = Formulas()
    listed = list(_products(text, found))
    if not listed:
        raise UnknownFormatError("no products here")
    places = found.places
    letters = "xyz" if letters_of(str(next(iter(listed[0][1][0]), ""))) == "x" else "abc"
    forms: list[list[LinearForm]] = [[], [], []]
    for line, factors, cyclic in listed:
        with on_line(line):
            for letter, factor in zip(letters, factors, strict=True):
                for key in factor:
                    found.place(key, letter)
        alike = cyclic and [{places[key]: x for key, x in factor.items()} for factor in factors]
        for turn in range(3 if alike and not alike[0] == alike[1] == alike[2] else 1):
            for slot in range(3):
                forms[slot].append(factors[(slot + turn) % 3])
    base = int(all(map(all, places.values())))
    a, b, c = (Entries.of_forms(part, places, base) for part in forms)
    if target is None and not all(map(int.__le__, sorted(c.extent), sorted((a.extent[0], b.extent[1])))):
        raise SchemeFormatError(f"A has {a.extent[0]} rows, B {b.extent[1]} columns, but the third factor is larger")
    reading = reading_by_place(NAME, (a, b, c), CONVENTION, target, ring)
    if found.skipped and a.extent == b.extent == c.extent == (1, 1):
        raise SchemeFormatError("products of single numbers, in a text that says more: this is no scheme")
    rotated = sum(cyclic for *_, cyclic in listed)
    found.note("products", not base)
    notes = (*found.notes, *[f"{rotated} products stand for their three rotations"] * bool(rotated))
    return [dataclasses.replace(reading, notes=notes, declared=ring)]


def _products(text: str, found: Formulas) -> Iterator[tuple[int, list[LinearForm], bool]]:
    """Every product of a text: its line, its three factors, and whether it stands for its rotations.

    Lines of prose are added to those skipped.
    """
    symmetric = re.search(r"(?mi)^\W*symmetry:?\s*3\b", text) is not None
    controlled, account = controlled_lines(text), Account(set("abcxyz"))
    for line, said in statements(text):
        statement = _TRACE.sub("", said)
        with on_line(line):
            if _is_prose(statement):
                if not re.search(r"\w", statement):
                    raise SchemeFormatError(f"{statement[:40]!r} is no product and no prose")
                account.check(line, statement, None)
                found.skipped.append(line)
                continue
            if line in controlled:
                raise SchemeFormatError("a product in a loop or under a condition")
            shorter = _shortened(statement)
            name, sign, value = shorter.partition("=")
            if sign and not _NAMED.fullmatch(name):
                raise SchemeFormatError(f"{name[:30]!r} before a product is not understood")
            value = Parser(value if sign else shorter, found).whole()
            for key, scalar in value.items() if isinstance(value, LinearForm) else [("", 1)]:
                if type(key) is not tuple:
                    raise SchemeFormatError("expected three factors, as in (a11+a22)*(b11+b22)*(c11+c22)")
                three = [*found.products[key[0]], scaled(found.thirds[key[1]], scalar)]
                yield line, three, symmetric or shorter != statement


def _is_trilinear(statement: str) -> bool:
    """Return whether blocks of three matrices stand in a statement, in their order."""
    statement = _TRACE.sub("", statement)
    for order in ("abc", "xyz"):
        letters = iter("".join(_BLOCK.findall(statement)).lower())
        if all(letter in letters for letter in order):
            return not _is_prose(statement)
    return False


def _shortened(statement: str) -> str:
    """A statement without a mark at its end that it is cyclic."""
    return statement[:-_MARK] + _CYCLIC.sub("", statement[-_MARK:])


def _is_prose(statement: str) -> bool:
    """Return whether a statement says something in words."""
    words = _WORD.search(statement) and _WORD.search(_EPSILON.sub("", _shortened(statement)))
    return words is not None or not re.search(r"\d", statement)

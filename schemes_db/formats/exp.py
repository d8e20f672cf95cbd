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
from collections.abc import Sequence

from ...errors import SchemeFormatError
from ..inexact import Coefficient
from ..ring import Ring
from ..scheme import MAX_RANK
from ..target import Target
from .arithmetic import times
from .candidates import reading_of_terms
from .expression import (
    ProductForm,
    block_of,
    parse_products,
    plain_product,
)
from .header import parse_header
from .lines import controlled_lines, statements
from .nodes import LinearForm
from .patterns import pattern
from .plain import PlainLine, read_trilinear, scan
from .reading import C_TRANSPOSED, Reading, Term, UnknownFormatError

NAME = "exp"
SUFFIX = ".exp"
CONVENTION = C_TRANSPOSED

_CYCLIC = pattern(r"(?i)[\s,;(+]*\b(?:cyc(?:lic(?:ally)?)?(?:\s+perm\w*)?|[zc]_?3)\b[\s).]*$")
_BLOCKS = tuple(tuple(pattern(rf"(?i){letter}\W?_?\d") for letter in letters) for letters in ("abc", "xyz"))
Places = dict[str, tuple[str, int, int]]
"""The letter, row and column, from 0, of every name that was met."""

_OPERATOR = pattern(r"[-=+*/@^<>\[\]{}|()]")
_EPSILON = pattern(r"\beps(?:ilon)?\b")
_NAMED = pattern(r"\s*(?:[A-Za-z]\w{0,12}|[A-Za-z]\[\d+\])\s*[:+]?\s*")
_MARK = 40
"""Characters at the end of a statement in which it may say that it is cyclic."""


def sniff(text: str) -> bool:
    """Return whether some line is a product with blocks of three matrices in it."""
    return any(_is_trilinear(statement) for _, statement in statements(text[:40_000]))


def parse_plain(
    text: str, lines: Sequence[PlainLine] | None, target: Target | None, ring: Ring | None
) -> list[Reading] | None:
    """Read one scheme of products in plain spelling, of which `lines` are given; None for any other text.

    Raises:
        SchemeFormatError: by no convention do the products fit the target and the ring.
    """
    if lines is None or _is_symmetric(text) or (plain := read_trilinear(lines)) is None:
        return None
    header = parse_header(text)
    ring = ring or header.ring
    reading = reading_of_terms(NAME, *plain, CONVENTION, target or header.target, ring)
    return [dataclasses.replace(reading, declared=ring)]


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read one scheme; both conventions become candidates where the sizes allow both.

    Raises:
        SchemeFormatError: with the line.
    """
    if (readings := parse_plain(text, scan(text), target, ring)) is not None:
        return readings
    header = parse_header(text)
    target, ring = target or header.target, ring or header.ring
    symmetric = _is_symmetric(text)
    listed: list[tuple[int, ProductForm]] = []
    cyclic: set[int] = set()
    skipped: list[int] = []
    controlled = controlled_lines(text)
    for number, statement in statements(text):
        if _is_prose(statement):
            if _OPERATOR.search(statement) and (_mentions(statement) or not re.search(r"\w", statement)):
                raise SchemeFormatError(f"{statement[:40]!r} is no product and no prose", line=number)
            skipped.append(number)
            continue
        if number in controlled:
            raise SchemeFormatError("a product in a loop or under a condition", line=number)
        shorter = _shortened(statement)
        name, sign, right = shorter.partition("=")
        if sign and not _NAMED.fullmatch(name):
            raise SchemeFormatError(f"{name[:30]!r} before a product is not understood", line=number)
        try:
            products = _products(right if sign else shorter)
        except SchemeFormatError as error:
            raise SchemeFormatError(error.message, line=number) from None
        for product in products:
            if symmetric or shorter != statement:
                cyclic.add(len(listed))
            listed.append((number, product))
        if len(listed) > MAX_RANK:
            raise SchemeFormatError(f"more than {MAX_RANK} products", line=number)
    if not listed:
        raise UnknownFormatError("no products here")
    letters, base = _letters([product for _, product in listed])
    places: Places = {}
    factors: tuple[list[list[Term]], ...] = ([], [], [])
    for position, (number, product) in enumerate(listed):
        try:
            terms = _terms(product, letters, base, places)
        except SchemeFormatError as error:
            raise SchemeFormatError(error.message, line=number) from None
        turns = 3 if position in cyclic and not terms[0] == terms[1] == terms[2] else 1
        for turn in range(turns):
            for slot in range(3):
                factors[slot].append(terms[(slot + turn) % 3])
    a, b, c = factors
    reading = reading_of_terms(NAME, a, b, c, CONVENTION, target, ring)
    notes = ["indices count from 0"] if not base else []
    notes += [f"lines that are no products were skipped: {', '.join(map(str, skipped[:5]))}"] if skipped else []
    notes += [f"{len(cyclic)} products stand for their three rotations"] if cyclic else []
    return [dataclasses.replace(reading, notes=tuple(notes), declared=ring)]


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
    return (
        not re.search(r"\d", statement)
        or re.search(r"[A-Za-z]{3}", _EPSILON.sub("", _shortened(statement))) is not None
    )


def _mentions(statement: str) -> bool:
    """Return whether a statement names a block."""
    return any(block.search(statement) for blocks in _BLOCKS for block in blocks)


def _products(text: str) -> list[ProductForm]:
    """The products of three sums in a statement, which may add up several."""
    if (plain := plain_product(text)) is not None and len(plain.forms) == 3:
        return [plain]
    found = []
    for product in parse_products(text):
        if len(product.forms) != 3:
            raise SchemeFormatError(
                f"expected three factors, as in (a11+a22)*(b11+b22)*(c11+c22), not {len(product.forms)}"
            )
        found.append(product)
    return found


def _letters(products: list[ProductForm]) -> tuple[str, int]:
    """The letters of the three matrices, and whether indices count from 0 or from 1."""
    names = {name for product in products for form in product.forms for name in form}
    blocks = [block for name in names if (block := block_of(name)) is not None]
    found = {letter for letter, _, _ in blocks}
    base = 0 if any(not (row and col) for _, row, col in blocks) else 1
    return "xyz" if found and found <= set("xyz") else "abc", base


def _terms(product: ProductForm, letters: str, base: int, places: Places) -> list[list[Term]]:
    """The terms of the three factors of one product; the scalar multiplies the third."""
    return [
        _block_terms(form, letter, product.scalar if slot == 2 else 1, base, places)
        for slot, (form, letter) in enumerate(zip(product.forms, letters, strict=True))
    ]


def _block_terms(form: LinearForm, letter: str, scale: Coefficient, base: int, places: Places) -> list[Term]:
    try:
        found = [places[name] for name in form]
    except KeyError:
        for name in form:
            if name not in places and (block := block_of(name)) is not None:
                places[name] = block[0], block[1] - base, block[2] - base
        found = [places.get(name, ("", 0, 0)) for name in form]
    if {place[0] for place in found} - {letter}:
        other = next(name for name, place in zip(form, found, strict=True) if place[0] != letter)
        raise SchemeFormatError(f"{other} is not a block of {letter.upper()}")
    values = form.values() if scale == 1 else [times(value, scale) for value in form.values()]
    return [(row, col, value) for (_, row, col), value in zip(found, values, strict=True)]

"""Products and sums in plain spelling, read from a whole text by numpy.

Lines are `m1 = (a11 + 2*a22)(b[1,10])` and `c11 = m1 - m2`, or `(a11)*(b11)*(c11)`. Most large files are
written so. Any other spelling and every fault is left to the readers of single statements (`lines`),
which are slower by a factor of ten and can name the faulty line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from ..factor import IntArray
from ..scheme import MAX_RANK
from ..target import MAX_DIMENSION
from .reading import Entries

PIECE = 1 << 20
"""Characters that are scanned at once; a longer line is left to the slower readers."""

MAX_DIGITS = 18

Factors = tuple[Entries, Entries, Entries]

(
    _END,
    _DIGIT,
    _LETTER,
    _PLUS,
    _MINUS,
    _TIMES,
    _OPEN,
    _CLOSE,
    _LEFT,
    _RIGHT,
    _COMMA,
    _EQUALS,
    _INDEX,  # the number after a letter
    _ROW,  # the number after [
    _COL,  # the number after ,
    _SCALE,  # the * after a coefficient
    _BLANK,
    _OTHER,
) = range(18)

_FOLLOWERS = {
    _END: (_END, _LETTER, _OPEN),
    _LETTER: (_INDEX, _LEFT),
    _LEFT: (_ROW,),
    _ROW: (_COMMA,),
    _COMMA: (_COL,),
    _COL: (_RIGHT,),
    _INDEX: (_PLUS, _MINUS, _CLOSE, _EQUALS, _END),
    _RIGHT: (_PLUS, _MINUS, _CLOSE, _EQUALS, _END),
    _PLUS: (_LETTER, _DIGIT),
    _MINUS: (_LETTER, _DIGIT),
    _DIGIT: (_SCALE,),
    _SCALE: (_LETTER,),
    _OPEN: (_PLUS, _MINUS, _LETTER, _DIGIT),
    _CLOSE: (_TIMES, _OPEN, _END),
    _TIMES: (_OPEN,),
    _EQUALS: (_PLUS, _MINUS, _LETTER, _DIGIT, _OPEN),
}
"""Return which tokens may follow which; a _DIGIT token is a whole number here, a coefficient."""


def _kind_table() -> npt.NDArray[np.uint8]:
    table = np.full(256, _OTHER, dtype=np.uint8)
    table[ord("0") : ord("9") + 1] = _DIGIT
    table[ord("a") : ord("z") + 1] = _LETTER
    table[[ord(" "), ord("\t")]] = _BLANK
    for symbol, kind in zip("\n+-*()[],=", (_END, *range(_PLUS, _EQUALS + 1)), strict=True):
        table[ord(symbol)] = kind
    return table


def _follower_table() -> npt.NDArray[np.bool_]:
    table = np.zeros((_OTHER, _OTHER), dtype=bool)
    for kind, followers in _FOLLOWERS.items():
        table[kind, list(followers)] = True
    return table


_KINDS = _kind_table()
_FOLLOWS = _follower_table()
_IN_WORD = np.isin(np.arange(_OTHER), (_DIGIT, _LETTER, _LEFT, _RIGHT, _COMMA))
_COMMENT = re.compile(r"#[^\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]*")
_FIRST = np.array([_END], dtype=np.uint8)
_POWERS = 10 ** np.arange(MAX_DIGITS, dtype=np.int64)
_ROLES = np.full(_OTHER, _DIGIT, dtype=np.uint8)
_ROLES[[_LETTER, _LEFT, _COMMA]] = _INDEX, _ROW, _COL

Mask = npt.NDArray[np.bool_]


class _NotPlainError(Exception):
    """The text has another spelling, or a fault."""


@dataclass(frozen=True)
class _Terms:
    """Names with their coefficients: the line and the pair of parentheses (1, 2, 3; 0: none) in which each stands.

    Of `a12` row, col and number are 1, 2 and 12; of `m7` 0, 0 and 7; of `a[1,10]` 1, 10 and 0.
    """

    line: IntArray
    slot: IntArray
    letter: IntArray
    row: IntArray
    col: IntArray
    number: IntArray
    value: IntArray

    def __getitem__(self, chosen: Mask) -> _Terms:
        parts = (self.line, self.slot, self.letter, self.row, self.col, self.number, self.value)
        return _Terms(*(part[chosen] for part in parts))

    def of_blocks(self, letter: str) -> _Terms:
        """These terms; all of them must be of blocks of one matrix."""
        _require((self.letter == ord(letter)).all() and self.row.all() and self.col.all())
        _require(max(self.row.max(), self.col.max()) <= MAX_DIMENSION)
        return self


@dataclass(frozen=True)
class PlainLines:
    """The lines of a text that are not empty: how many parentheses each opens; the names that are set; all terms."""

    opened: IntArray
    heads: _Terms
    terms: _Terms


def scan(text: str) -> PlainLines | None:
    """The lines of a text in plain spelling; None where it has another one, or a fault."""
    if text.lstrip()[:1] in ("{", "[", "\\"):
        return None
    try:
        return _scanned(text)
    except _NotPlainError:
        return None


def read_equations(lines: PlainLines) -> Factors | None:
    """The factors of equations `m1 = (a11)(b11)` and `c11 = m1`, the third by C; None for any other lines."""
    return _read(lines, _equations)


def read_trilinear(lines: PlainLines) -> Factors | None:
    """The factors of products `(a11)*(b11)*(c11)`, the third as it is written; None for any other lines."""
    return _read(lines, _trilinear)


def _read(lines: PlainLines, meaning: Callable[[PlainLines], Factors]) -> Factors | None:
    try:
        return meaning(lines)
    except _NotPlainError:
        return None


def _equations(lines: PlainLines) -> Factors:
    is_product = lines.opened == 2
    rank, count = int(is_product.sum()), len(is_product)
    _require(len(lines.heads.line) == count and 0 < rank < count and rank <= MAX_RANK)
    _require(is_product[:rank].all() and not lines.opened[rank:].any())
    left, right, sums = (lines.terms[lines.terms.slot == slot] for slot in (1, 2, 0))
    products, outputs = lines.heads[is_product], lines.heads[~is_product].of_blocks("c")
    letter = products.letter[0]
    _require(chr(letter) not in "abcz" and (products.letter == letter).all() and (sums.letter == letter).all())
    _require(_distinct(outputs.row, outputs.col))
    order = np.argsort(products.number)
    numbers = products.number[order]
    _require(numbers[0] > 0 and (np.diff(numbers) > 0).all())
    found = np.minimum(np.searchsorted(numbers, sums.number), rank - 1)
    _require((numbers[found] == sums.number).all())
    line = sums.line - rank
    return (
        _entries(rank, left.of_blocks("a")),
        _entries(rank, right.of_blocks("b")),
        _checked(Entries(rank, order[found], outputs.row[line] - 1, outputs.col[line] - 1, sums.value)),
    )


def _trilinear(lines: PlainLines) -> Factors:
    rank = len(lines.opened)
    _require(0 < rank <= MAX_RANK and not len(lines.heads.line) and (lines.opened == 3).all())
    a, b, c = (
        _entries(rank, lines.terms[lines.terms.slot == slot].of_blocks(letter)) for slot, letter in enumerate("abc", 1)
    )
    return a, b, c


def _entries(rank: int, terms: _Terms) -> Entries:
    return _checked(Entries(rank, terms.line, terms.row - 1, terms.col - 1, terms.value))


def _checked(entries: Entries) -> Entries:
    """The entries, each block of which stands once in a product; the other readers add it up."""
    _require(_distinct(entries.product * MAX_DIMENSION + entries.row, entries.col))
    return entries


def _distinct(rows: IntArray, cols: IntArray) -> bool:
    keys = rows * (MAX_DIMENSION + 1) + cols
    return bool((np.diff(keys) > 0).all()) or len(np.unique(keys)) == len(keys)


def _require(condition: bool | np.bool_) -> None:
    if not condition:
        raise _NotPlainError


def _scanned(text: str) -> PlainLines:
    plain = _COMMENT.sub("", text).replace("\r\n", "\n").lower()
    _require(plain.isascii() and "\\" not in text)
    pieces: list[PlainLines] = []
    lines = 0
    for piece in _pieces(plain + "\n"):
        pieces.append(_scan(piece, lines))
        lines += len(pieces[-1].opened)
    if len(pieces) == 1:
        return pieces[0]
    heads, terms = (
        _Terms(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(_Terms)))
        for parts in ([piece.heads for piece in pieces], [piece.terms for piece in pieces])
    )
    return PlainLines(np.concatenate([piece.opened for piece in pieces]), heads, terms)


def _pieces(text: str) -> Iterator[str]:
    """Whole lines, of so many characters at most."""
    start = 0
    while start < len(text):
        stop = len(text) if len(text) - start <= PIECE else text.rfind("\n", start, start + PIECE) + 1
        _require(stop > start)
        yield text[start:stop]
        start = stop


def _scan(text: str, first_line: int) -> PlainLines:
    """The lines of a piece that ends with a line's end."""
    kinds, characters, numbers = _tokens(text)
    is_open, is_end = kinds == _OPEN, kinds == _END
    opened = np.cumsum(is_open)
    depth = opened - np.cumsum(kinds == _CLOSE)
    ends = np.flatnonzero(is_end)
    _require(((depth == 0) | (depth == 1)).all() and not depth[ends].any())
    starts = np.concatenate([[0], ends[:-1] + 1])
    filled = ends > starts
    opened_before = np.concatenate([[0], opened[ends[:-1]]])
    line = np.cumsum(is_end) - is_end
    # A name that is set stands first in its line.
    equals = np.flatnonzero(kinds == _EQUALS)
    heads = starts[line[equals]]
    _require((equals - heads == np.where(kinds[heads + 1] == _LEFT, 6, 2)).all())

    letters = np.flatnonzero(kinds == _LETTER)
    number = np.where(kinds[letters + 1] == _INDEX, numbers[letters + 1], 0)
    two = (number > 9) & (number < 100)
    last = len(kinds) - 1
    row, col = (np.where(number > 0, 0, numbers[np.minimum(letters + step, last)]) for step in (2, 4))
    scaled = kinds[letters - 1] == _SCALE
    size = np.where(scaled, numbers[letters - 2], 1)
    minus = kinds[letters - np.where(scaled, 3, 1)] == _MINUS
    of_line = line[letters]
    terms = _Terms(
        (np.cumsum(filled) - 1 + first_line)[of_line],
        opened[letters] - opened_before[of_line],
        characters[letters].astype(np.int64),
        np.where(two, number // 10, row),
        np.where(two, number % 10, col),
        number,
        np.where(minus, -size, size),
    )
    is_head = np.zeros(len(kinds), dtype=bool)
    is_head[heads] = True
    is_head = is_head[letters]
    return PlainLines((opened[ends] - opened_before)[filled], terms[is_head], terms[~is_head])


def _tokens(text: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], IntArray]:
    """The kinds of all tokens, their first characters, and the values of numbers."""
    characters = np.frombuffer(text.encode(), dtype=np.uint8)
    kinds = _KINDS[characters]
    filled = np.flatnonzero(kinds != _BLANK)
    kinds, characters = kinds[filled], characters[filled]
    _require(kinds.max() < _OTHER)
    apart = np.flatnonzero(np.diff(filled) > 1)
    _require(not (_IN_WORD[kinds[apart]] & _IN_WORD[kinds[apart + 1]]).any())
    is_digit = kinds == _DIGIT
    starts, stops = np.flatnonzero(np.diff(is_digit, prepend=False, append=False)).reshape(-1, 2).T
    lengths = stops - starts
    _require(len(starts) > 0 and lengths.max() <= MAX_DIGITS and (characters[starts] != ord("0")).all())
    digits = np.flatnonzero(is_digit)
    powers = _POWERS[np.repeat(stops, lengths) - 1 - digits]
    values = np.add.reduceat((characters[digits] - ord("0")) * powers, np.cumsum(lengths) - lengths)

    is_token = ~is_digit
    is_token[starts] = True
    kinds, characters = kinds[is_token], characters[is_token]
    found = np.flatnonzero(kinds == _DIGIT)
    numbers = np.zeros(len(kinds), dtype=np.int64)
    numbers[found] = values
    _require(found[0] > 0)
    kinds[found] = _ROLES[kinds[found - 1]]
    times = np.flatnonzero(kinds == _TIMES)
    kinds[times[kinds[times - 1] == _DIGIT]] = _SCALE
    _require(_FOLLOWS[np.concatenate([_FIRST, kinds[:-1]]), kinds].all())
    return kinds, characters, numbers

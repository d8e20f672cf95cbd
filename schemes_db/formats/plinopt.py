"""PLinOpt's sparse matrices .sms: L (R x m k), R (R x k n) and P (m n x R), the third not transposed.

One matrix is `rows cols R`, then `row col value` lines from 1, then `0 0 0`; values are p or p/q,
`#` starts a comment. The three come as files named ..L.sms, ..R.sms and ..P.sms, of which any one
is named, or as a folder with these, or one after the other in one file, which is what is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...errors import SchemeFormatError
from ..gaussian import Number
from ..ring import Ring
from ..scheme import MAX_RANK
from ..target import Target
from .candidates import reading_of_rows, shape_of
from .reading import C, Reading, parse_coefficient

NAME = "sms"
SUFFIX = ".sms"
CONVENTION = C

_START = r"(?a)\s*(?:#[^\n]*\n\s*)*\d+[ \t]+\d+[ \t]+[A-Za-z][ \t]*\r?(?:\n|$)"

Matrix = tuple[int, int, list[tuple[int, int, Number]]]
"""Rows, columns, and the (row, column, value) entries, 0-based."""


def sniff(text: str) -> bool:
    """Return whether the first line that is no comment is a matrix header such as `7 4 R`."""
    return re.match(_START, text) is not None


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read the schemes of a text: every three matrices make one.

    Raises:
        SchemeFormatError: with the line; or the matrices are not three by three, or do not fit together.
    """
    lines = ((number, line.split("#", 1)[0].split()) for number, line in enumerate(text.splitlines(), start=1))
    filled = ((number, words) for number, words in lines if words)
    matrices = []
    while header := next(filled, None):
        matrices.append(_matrix(header, filled))
    if not matrices or len(matrices) % 3:
        raise SchemeFormatError(
            f"{len(matrices)} matrices, where L, R and P belong; name one of the files ..L.sms, ..R.sms, ..P.sms "
            "that stand beside each other, or put the three into one file"
        )
    return [_reading(matrices[i : i + 3], target, ring) for i in range(0, len(matrices), 3)]


def _matrix(header: tuple[int, list[str]], lines: Iterator[tuple[int, list[str]]]) -> Matrix:
    number, words = header
    if len(words) != 3 or not (_is_count(words[0]) and _is_count(words[1])):
        raise SchemeFormatError("expected a matrix header such as 7 4 R", line=number)
    rows, cols = int(words[0]), int(words[1])
    if max(rows, cols) > MAX_RANK:
        raise SchemeFormatError(f"a matrix of {rows} x {cols}, beyond {MAX_RANK}", line=number)
    entries: list[tuple[int, int, Number]] = []
    for number, words in lines:
        if len(words) != 3 or not (_is_count(words[0]) and _is_count(words[1])):
            raise SchemeFormatError("expected an entry such as 1 2 -1/2", line=number)
        row, col = int(words[0]), int(words[1])
        if row == col == 0:
            return rows, cols, entries
        if not (1 <= row <= rows and 1 <= col <= cols):
            raise SchemeFormatError(f"entry {row} {col} is outside the {rows} x {cols} matrix", line=number)
        try:
            entries.append((row - 1, col - 1, parse_coefficient(words[2], "the entry")))
        except SchemeFormatError as error:
            raise SchemeFormatError(error.message, line=number) from None
    raise SchemeFormatError("the matrix has no end: expected a line 0 0 0", line=number)


def _is_count(word: str) -> bool:
    return len(word) <= 7 and word.isascii() and word.isdigit()


def _reading(matrices: list[Matrix], target: Target | None, ring: Ring | None) -> Reading:
    (rank, a, left), (again, b, right), (c, third, outputs) = matrices
    if not rank == again == third:
        raise SchemeFormatError(
            f"L has {rank} rows, R has {again} and P has {third} columns: no one number of products"
        )
    if rank > len(left):
        raise SchemeFormatError(f"{rank} products, but only {len(left)} entries in L")
    rows: tuple[list[list[tuple[int, Number]]], ...] = tuple([[] for _ in range(rank)] for _ in range(3))
    for part, entries in zip(rows, (left, right, [(col, row, value) for row, col, value in outputs]), strict=True):
        for r, index, value in entries:
            part[r].append((index, value))
    return reading_of_rows(NAME, (rows[0], rows[1], rows[2]), shape_of(a, b, c), CONVENTION, target, ring)

"""The .txt of the flip graph tools around FastMatrixMultiplication: `n1 n2 n3 m`, then U, V, W, C transposed.

Each factor is one line of m rows, row after row; in the fractional variant every entry is a
numerator and a denominator. A file of several schemes has their number on its first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from ...errors import SchemeFormatError
from ..gaussian import Number
from ..ring import Ring
from ..scheme import MAX_RANK
from ..target import Target
from .candidates import Row, reading_of_rows
from .reading import C_TRANSPOSED, Reading

NAME = "fmm-text"
SUFFIX = ".txt"
CONVENTION = C_TRANSPOSED

MAX_DIGITS = 20

_START = r"(?a)(?:\d{1,9}[ \t]*\r?\n\s*)?\d{1,18}([ \t]+\d{1,18}){3}[ \t]*\r?\n[\s\d-]+"


def sniff(text: str) -> bool:
    """Return whether it starts with four sizes on a line, a count before them or not, and continues with integers."""
    return re.fullmatch(_START, text.lstrip()[:4000]) is not None


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read all schemes; both conventions become candidates.

    Raises:
        SchemeFormatError: with the line, where numbers are missing or left over.
    """
    lines = ((number, line.split()) for number, line in enumerate(text.splitlines(), start=1) if line.strip())
    first = next(lines, (1, []))
    count = None
    if len(first[1]) == 1:
        count = _integer(first[1][0], first[0])
        first = next(lines, (first[0], []))
    readings = []
    while first[1]:
        readings.append(_scheme(first, lines, target, ring))
        first = next(lines, (0, []))
    if not readings or (count is not None and count != len(readings)):
        raise SchemeFormatError(f"{len(readings)} schemes, where the first line says {count or 'n1 n2 n3 m'}")
    return readings


def _scheme(
    header: tuple[int, list[str]], lines: Iterator[tuple[int, list[str]]], target: Target | None, ring: Ring | None
) -> Reading:
    number, words = header
    if len(words) != 4:
        raise SchemeFormatError("expected four sizes: n1 n2 n3 m", line=number)
    m, k, n, rank = (_integer(word, number) for word in words)
    if not 1 <= rank <= MAX_RANK:
        raise SchemeFormatError(f"a scheme has 1 to {MAX_RANK} products, not {rank}", line=number)
    u, v, w = (_factor(next(lines, (number, [])), rank, entries) for entries in (m * k, k * n, m * n))
    return reading_of_rows(NAME, (u, v, w), (m, k, n), C_TRANSPOSED, target, ring)


def _factor(line: tuple[int, list[str]], rank: int, entries: int) -> list[Row]:
    number, words = line
    numbers: list[Number] = [_integer(word, number) for word in words]
    if len(numbers) == 2 * rank * entries and entries:
        if 0 in numbers[1::2]:
            raise SchemeFormatError("a denominator is 0", line=number)
        # Pairs of a numerator and a denominator.
        numbers = [Fraction(int(str(p)), int(str(q))) for p, q in zip(numbers[::2], numbers[1::2], strict=True)]
    if len(numbers) != rank * entries or not entries:
        raise SchemeFormatError(
            f"a line of {len(words)} numbers, where {rank} rows of {entries} entries make {rank * entries}", line=number
        )
    return [
        [(index, value) for index, value in enumerate(numbers[r * entries : (r + 1) * entries]) if value]
        for r in range(rank)
    ]


def _integer(word: str, line: int) -> int:
    if len(word) > MAX_DIGITS or not re.fullmatch(r"-?\d+", word, re.ASCII):
        raise SchemeFormatError(f"{word[:12]!r} is not an integer", line=line)
    return int(word)

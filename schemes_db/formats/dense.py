"""Formats of nothing but numbers in lines: fast-matmul, Bini's table, the flip graph tools' text, PLinOpt's .sms."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby

from ...errors import SchemeFormatError
from ..gaussian import Number
from ..inexact import Coefficient
from ..ring import Z2
from ..scheme import MAX_RANK
from .arrays import Array, array_of_rows, reading_of_unlabelled
from .candidates import reading_of_rows, shape_of
from .parts import HOW
from .patterns import pattern, says_change
from .reading import C_TRANSPOSED, C, Reading, Wanted, on_line, parse_coefficient
from .syntax import number

Line = tuple[int, list[str]]
"""The number of a line and its words."""

_COUNT = pattern(r"(?a)\d{1,7}")
_INTEGER = pattern(r"(?a)-?\d{1,20}")
_BINI = r"(?m)^[\s#%/*]*Bini[ \t]+(\d{1,3})[ \t]+(\d{1,3})[ \t]+(\d{1,3})[ \t]+(\d{1,7})[ \t\r]*$"
_BINI_LINE = pattern(r"\d{1,7}\s*;[^;]*;[^;]*;[^;]*|[A-Za-z;\s]*")
_MOD_2 = r"(?i)\bmod(?:ulo)?[ _-]?2\b"
_NUMBERS = pattern(r"(?a)(?>[\s\d./+*^{}()-]|(?:e|E|eps|epsilon|x|lambda)\d{0,2}i?(?![A-Za-z])|[ij]\b|#[^\n]*)*+")
_SIZES = pattern(r"(?a)(?:\d{1,9}[ \t]*\r?\n\s*)?\d{1,18}([ \t]+\d{1,18}){3}[ \t]*\r?\n[\s\d-]+")
_SMS = pattern(r"(?a)\s*(?:#[^\n]*\n\s*)*\d+[ \t]+\d+[ \t]+[A-Za-z][ \t]*\r?(?:\n|$)")


def _words(text: str) -> list[Line]:
    """The lines of a text that are not empty without their comments."""
    lines = ((at, line.partition("#")[0].split()) for at, line in enumerate(text.splitlines(), start=1))
    return [(at, words) for at, words in lines if words]


def numbers(line: int, words: Sequence[str], size: int | None = None) -> list[Coefficient]:
    """The numbers of a line, as many as `size` says."""
    with on_line(line):
        if len(words) != (size or len(words)):
            raise SchemeFormatError(f"{len(words)} numbers, where {size} entries belong")
        return list(map(number, words))


def _blocks(text: str) -> list[list[Line]]:
    """The blocks of lines that comment lines part."""
    parts = groupby(enumerate(text.splitlines(), start=1), key=lambda line: line[1].lstrip().startswith("#"))
    blocks = ([(at, line.split()) for at, line in part if line.strip()] for comment, part in parts if not comment)
    return list(filter(None, blocks))


def parse_fast_matmul(text: str, wanted: Wanted) -> list[Reading]:
    """Read one scheme of U, V and W as dense blocks parted by `#` lines: rows are entries, columns products."""
    blocks = _blocks(text)
    if len(blocks) != 3:
        raise SchemeFormatError(f"expected three blocks of numbers parted by # lines, not {len(blocks)}")
    rank = len(blocks[0][0][1])
    arrays = [array_of_rows([numbers(*row, rank) for row in block]) for block in blocks]
    columns = C, "products as columns"
    return [reading_of_unlabelled(wanted, arrays, columns, others=wanted.target is None)]


def parse_bini(text: str, wanted: Wanted) -> list[Reading]:
    """Read one scheme: a header `Bini m k n R`, then `product ; Gamma ; Alpha ; Beta` a line, the third factor first.

    A line with `mod 2` before the table says that it holds only there.
    """
    header = re.search(_BINI, text)
    if header is None:
        raise SchemeFormatError("expected a header such as Bini 2 2 2 7")
    m, k, n, rank = map(int, header.groups())
    if not 1 <= rank <= MAX_RANK:
        raise SchemeFormatError(f"a scheme has 1 to {MAX_RANK} products, not {rank}")
    if wanted.ring is None and re.search(_MOD_2, text.split(";", 1)[0]):
        wanted = dataclasses.replace(wanted, ring=Z2)
    before = text.count("\n", 0, header.end())
    lines = [(at, line.split("#", 1)[0].strip().rstrip(";")) for at, line in enumerate(text.splitlines(), start=1)]
    for at, line in (*lines[:before], *lines[before + 1 :]):
        table = at > before
        if (table and not _BINI_LINE.fullmatch(line)) or (line.count(";") != 3 and (says_change(line) or "=" in line)):
            raise SchemeFormatError("expected a line of product ; Gamma ; Alpha ; Beta", line=at)
    sizes = m * n, m * k, k * n
    parts = {line.partition(";")[0].strip(): (at, line.split(";")[1:]) for at, line in lines if line.count(";") == 3}
    if len(parts) != rank:
        raise SchemeFormatError(f"{len(parts)} products, where the header says {rank}")
    rows = parts.values()
    w, u, v = (array_of_rows([numbers(at, part[slot].split(), sizes[slot]) for at, part in rows]) for slot in range(3))
    return [reading_of_unlabelled(wanted, [u, v, w], (C, ""))]


def parse_fmm_text(text: str, wanted: Wanted) -> list[Reading]:
    """Read all schemes: `n1 n2 n3 m`, then U, V, W, C transposed, each a line of m rows, row after row.

    In the fractional variant every entry is a numerator and a denominator. A file of several schemes has their
    number on its first line.
    """
    lines = [(line, [_integer(word, line) for word in words]) for line, words in _words(text)]
    count = lines.pop(0)[1][0] if lines and len(lines[0][1]) == 1 else None
    readings = []
    for start in range(0, len(lines), 4):
        (line, head), *rest = lines[start : start + 4]
        if len(head) != 4 or not 1 <= head[3] <= MAX_RANK:
            raise SchemeFormatError(f"expected four sizes: n1 n2 n3 m, with m from 1 to {MAX_RANK}", line=line)
        m, k, n, rank = head
        rest += [(line, [])] * (3 - len(rest))
        arrays = [_rows(*part, rank, size) for part, size in zip(rest, (m * k, k * n, m * n), strict=True)]
        readings.append(reading_of_unlabelled(wanted, arrays, (C_TRANSPOSED, "")))
    if not readings or (count is not None and count != len(readings)):
        raise SchemeFormatError(f"{len(readings)} schemes, where the first line says {count or 'n1 n2 n3 m'}")
    return readings


def _rows(line: int, words: list[int], rank: int, entries: int) -> Array:
    numbers: Sequence[Number] = words
    with on_line(line):
        if len(words) == 2 * rank * entries:
            if 0 in words[1::2]:
                raise SchemeFormatError("a denominator is 0")
            numbers = [Fraction(p, q) for p, q in zip(words[::2], words[1::2], strict=True)]
        if len(numbers) != rank * entries:
            wanted = f"{rank} rows of {entries} entries make {rank * entries}"
            raise SchemeFormatError(f"a line of {len(words)} numbers, where {wanted}")
    return array_of_rows([numbers[at : at + entries] for at in range(0, len(numbers), entries or 1)])


def _integer(word: str, line: int) -> int:
    if not _INTEGER.fullmatch(word):
        raise SchemeFormatError(f"{word[:12]!r} is not an integer", line=line)
    return int(word)


def parse_sms(text: str, wanted: Wanted) -> list[Reading]:
    """Read the schemes of a text: every three sparse matrices L (R x m k), R (R x k n) and P (m n x R) make one.

    A matrix is `rows cols R`, then `row col value` lines from 1, then `0 0 0`; values are p or p/q. The three may
    come as files ..L.sms, ..R.sms and ..P.sms.
    """
    lines = iter(_words(text))
    matrices = [_matrix(*head, lines) for head in lines]
    if not matrices or len(matrices) % 3:
        raise SchemeFormatError(f"{len(matrices)} matrices, where L, R and P belong; {HOW}")
    return [_sparse_reading(matrices[i : i + 3], wanted) for i in range(0, len(matrices), 3)]


def _matrix(line: int, head: list[str], lines: Iterator[Line]) -> tuple[int, int, list[tuple[int, int, Number]]]:
    """Rows, columns, and the (row, column, value) entries, 0-based, of the matrix that begins with a head."""
    rows, cols = _places(line, head, "a matrix header such as 7 4 R")
    if max(rows, cols) > MAX_RANK:
        raise SchemeFormatError(f"a matrix of {rows} x {cols}, beyond {MAX_RANK}", line=line)
    entries: list[tuple[int, int, Number]] = []
    for at, words in lines:
        row, col = _places(at, words, "an entry such as 1 2 -1/2")
        if words == ["0", "0", "0"]:
            return rows, cols, entries
        if not (1 <= row <= rows and 1 <= col <= cols):
            raise SchemeFormatError(f"entry {row} {col} is outside the {rows} x {cols} matrix", line=at)
        with on_line(at):
            entries.append((row - 1, col - 1, parse_coefficient(words[2], "the entry")))
    raise SchemeFormatError("the matrix has no end: expected a line 0 0 0", line=line)


def _places(line: int, words: list[str], wanted: str) -> tuple[int, int]:
    if len(words) != 3 or not all(map(_COUNT.fullmatch, words[:2])):
        raise SchemeFormatError(f"expected {wanted}", line=line)
    return int(words[0]), int(words[1])


def _sparse_reading(matrices: list[tuple[int, int, list[tuple[int, int, Number]]]], wanted: Wanted) -> Reading:
    (rank, a, left), (again, b, right), (c, third, outputs) = matrices
    if not rank == again == third <= len(left):
        said = f"L has {rank} rows with {len(left)} entries, R has {again}, P has {third} columns"
        raise SchemeFormatError(f"{said}: no one number of products")
    rows: list[list[list[tuple[int, Number]]]] = [[[] for _ in range(rank)] for _ in range(3)]
    for part, products in zip((left, right, [(r, index, value) for index, r, value in outputs]), rows, strict=True):
        for r, index, value in part:
            products[r].append((index, value))
    return reading_of_rows(wanted, rows, shape_of(a, b, c), C)


def sniff_bini(text: str) -> bool:
    """Return whether there is a header `Bini m k n R`."""
    return ";" in text and re.search(_BINI, text[:20_000]) is not None


def sniff_fmm_text(text: str) -> bool:
    """Return whether there are four sizes and then integers."""
    return _SIZES.fullmatch(text.lstrip()[:4000]) is not None


def sniff_sms(text: str) -> bool:
    """Return whether the head of a sparse matrix comes first."""
    return _SMS.match(text) is not None


def sniff_fast_matmul(text: str) -> bool:
    """Return whether there are three blocks of numbers, parted by comment lines."""
    head = text[:1_000_000]
    return len(_blocks(head)) == 3 and _NUMBERS.fullmatch(head) is not None

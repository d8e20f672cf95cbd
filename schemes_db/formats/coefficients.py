"""Coefficients one by one: in tables, as people keep them in spreadsheets and in Markdown, or in lists of JSON.

In a table a row may be one coefficient: its product, its factor (A, B, C or U, V, W), its block and its value. Or the
head of a table names blocks and each row a product, or the head products and each row a block; the blocks of the three
factors may stand in one table or in three. Cells are parted by commas, semicolons, tabs or bars.

In JSON a factor of a product is a list of `[i, j, value]`, or an object such as `{"a11": 1, "a22": -1}`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import SchemeFormatError
from ..target import MAX_DIMENSION
from .arithmetic import is_number
from .arrays import ROLES
from .candidates import reading_of_coefficients
from .lines import numbered, without_comment
from .naming import letters_of, place_of
from .patterns import changes_something, pattern
from .reading import Reading, Wanted, on_line
from .syntax import number

SNIFFED = 4000
"""Characters in which the first row of a table is looked for."""

_COLUMNS = pattern(
    r"(?i)(product|term|p|m|r)s?\|(factor|matrix|side)\|(block|entry|element|row\|col(?:umn)?)\|(coefficient|coeff?|value)"
)
_BLOCK = pattern(r"[\[({]?([A-Za-z]?)[_\[({]*(?:(\d)(\d)|(\d{1,3})\s*[,;_ ]\s*(\d{1,3}))[\])}]*")
_PRODUCT = pattern(r"(?:[A-Za-z]+_?)?\{?\d{1,5}\}?")
_NO_ROW = pattern(r"[\s|:=+-]*|\s*[#%].*|\s*```.*|[^\d,;|\t]*")
"""Rulers, comments and headings."""

Row = tuple[int, list[str]]
"""The number of a line, and its cells."""

Block = tuple[str, int, int]
"""A letter, "" where another column names the factor, and the row and column of a block."""

Entry = tuple[int, str, Block, str]
"""The number of a line, and the product, the block and the value of a coefficient."""


def sniff(text: str) -> bool:
    """Return whether the first row of cells is a head, or a coefficient."""
    _, cells = next(_rows(text[:SNIFFED]), (0, [""]))
    return _COLUMNS.fullmatch("|".join(cells)) is not None or _entry(0, cells) is not None or _head(cells) is not None


def parse(text: str, wanted: Wanted) -> list[Reading]:
    """Read one scheme.

    Raises:
        SchemeFormatError: with the line, where a row fits no table or a coefficient is set twice; a product lacks a
            factor, or there are not three factors.
    """
    found = list(_entries(text))
    letters = sorted({block[0] for _, _, block, _ in found})
    if len(letters) != 3:
        raise SchemeFormatError(f"these tables have blocks of {len(letters)} factors, not of three")
    numbers: dict[str, int] = {}
    coefficients = []
    for at, product, (letter, row, col), value in found:
        with on_line(at):
            key = numbers.setdefault(product.lower(), len(numbers))
            coefficients.append((letters.index(letter), key, row, col, number(value)))
    return [reading_of_coefficients(wanted, len(numbers), coefficients)]


def _entries(text: str) -> Iterator[Entry]:
    """Yield the coefficients of all tables.

    Raises:
        SchemeFormatError: a row is none of the table that it stands in.
    """
    head: Sequence[str | Block] = ()
    bare, count, width = False, 0, 4
    for at, cells in _rows(text):
        if _COLUMNS.fullmatch("|".join(cells)):
            head, width = (), len(cells)
            continue
        if (named := _head(cells)) is not None:
            head, bare, count = named, len(named) == len(cells), 0
        elif not head and (entry := _entry(at, cells, width)) is not None:
            yield entry
        elif head and len(cells) + bare == len(head) + 1:
            count += 1
            yield from _line(at, [str(count), *cells] if bare else cells, head)
        else:
            raise SchemeFormatError("a row that is no coefficient, and fits no head of blocks or products", line=at)


def _line(at: int, cells: list[str], head: Sequence[str | Block]) -> Iterator[Entry]:
    """Yield the coefficients of a row below a head of blocks, or of products."""
    block = _block(cells[0])
    for value, above in zip(cells[1:], head, strict=True):
        if isinstance(above, tuple) and _PRODUCT.fullmatch(cells[0]):
            yield at, cells[0], above, value or "0"
        elif isinstance(above, str) and block is not None and block[0]:
            yield at, above, block, value or "0"
        else:
            raise SchemeFormatError(f"{cells[0][:30]!r} names no product and no block", line=at)


def _head(cells: list[str]) -> Sequence[str | Block] | None:
    """Return the blocks that a row names, or the blocks or products behind its first cell; None if it is no head."""
    first = _block(cells[0])
    blocks = [_block(cell) for cell in cells[not (first and first[0]) :]]
    if blocks and all(block is not None and block[0] for block in blocks):
        return [block for block in blocks if block is not None]
    lists = len(cells) > 2 and all(_PRODUCT.fullmatch(cell) and cell[:1].isalpha() for cell in cells[1:])
    return cells[1:] if lists and not cells[0][-1:].isdigit() else None


def _entry(at: int, cells: list[str], width: int = 4) -> Entry | None:
    """Return the coefficient that a row of so many cells is, if it is one."""
    if len(cells) != width or not _PRODUCT.fullmatch(cells[0]):
        return None
    role = next((slot for slot, names in enumerate(ROLES) if cells[1].lower() in names and cells[1].isalpha()), None)
    block = _block(",".join(cells[2:-1]))
    return None if role is None or block is None else (at, cells[0], ("abc"[role], *block[1:]), cells[-1])


def _block(cell: str) -> Block | None:
    match = _BLOCK.fullmatch(cell)
    return match and (match[1].lower(), int(match[2] or match[4]), int(match[3] or match[5]))


def _rows(text: str) -> Iterator[Row]:
    """Yield the rows of cells: all lines but empty ones, rulers, comments, and headings that change no numbers."""
    for at, line in numbered(text):
        said = without_comment(line)
        if _NO_ROW.fullmatch(line) and not (re.search(r"\w", said) and changes_something(said)):
            continue
        bars = line.strip().startswith("|")
        parted = line.strip().strip("|") if bars else line
        mark = "|" if bars else next((mark for mark in "\t;," if mark in line), "|")
        yield at, [cell.strip(" `$*") for cell in next(csv.reader([parted], delimiter=mark, skipinitialspace=True), [])]


def sparse_products(parts: Sequence[Sequence[Any]]) -> list[tuple[int, int, int, int, Any]]:
    """The coefficients in the three parts of every product, as `reading_of_coefficients` takes them.

    Empty where a part is no list of them.

    Raises:
        SchemeFormatError: blocks of another factor.
    """
    found = [(slot, r, _listed(part)) for r, three in enumerate(parts) for slot, part in enumerate(three)]
    if not all(part for *_, part in found):
        return []
    for slot in range(3):
        names = {name for three in parts for name in (three[slot] if isinstance(three[slot], dict) else ())}
        letters = set(map(letters_of, names))
        if len(letters) > 1 or any(letters & set(ROLES[other]) for other in range(3) if other != slot):
            raise SchemeFormatError(f"blocks of {', '.join(sorted(letters))} in the factor {'ABC'[slot]}")
    return [(slot, r, *one) for slot, r, part in found for one in part]


def _listed(part: Any) -> list[tuple[int, int, Any]]:
    """The row, the column and the value of the coefficients that a value lists; none where it is no list of them."""
    if isinstance(part, dict):
        part = [[*place_of(name), value] for name, value in part.items()]
    fits = isinstance(part, list) and all(isinstance(one, list) and len(one) == 3 for one in part)
    if not fits or not all(
        type(index) is int and 0 <= index <= MAX_DIMENSION and is_number(value)
        for row, col, value in part
        for index in (row, col)
    ):
        return []
    return [(row, col, value) for row, col, value in part]

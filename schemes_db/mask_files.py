"""Masks of blocks in files: text, CSV, JSON or a NumPy array, distinguished by content."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..errors import SchemeFormatError, TargetError
from .grids import KINDS, Kind, Kinds

MASK_BYTES = 1 << 20
"""The largest mask file: the largest grid, 128 x 128, has 128 KiB as 64-bit integers."""

_LETTERS = KINDS | {"H": Kind.LOWER, "1": Kind.FULL, "0": Kind.ABSENT}
"""The letters of the kinds in a file. H, a half block, is read as L and never written."""

_WORDS = _LETTERS | {"True": Kind.FULL, "False": Kind.ABSENT, "1.0": Kind.FULL, "0.0": Kind.ABSENT}
"""The cells of a table besides: booleans and decimals, as tables of arrays are written."""

_ALLOWED = "1 or F (full), 0 or . (absent), L or H (lower half) and U (upper half)"


def read_mask(path: str) -> Kinds:
    """The grid of a mask file.

    A text with a row a line, blanks between blocks skipped; a CSV table; JSON, a list of rows, each a
    text or a list; or a .npy array (rows, columns) of booleans, of integers 0 and 1, or of letters.

    Raises:
        TargetError: the file can't be read, is too large, has other characters, or rows of different length.
    """
    try:
        with Path(path).open("rb") as stream:
            raw = stream.read(MASK_BYTES + 1)
    except OSError as error:
        raise TargetError(f"mask {path} can't be read: {error.strerror}") from None
    if len(raw) > MASK_BYTES:
        raise TargetError(f"mask {path} is larger than {MASK_BYTES >> 20} MiB: give a block a character")
    try:
        return _grid(_rows(raw))
    except (TargetError, SchemeFormatError) as error:
        raise TargetError(f"mask {path}: {error}") from None


def _rows(raw: bytes) -> Iterable[Sequence[Any]]:
    """The rows of a file, a cell a block."""
    if raw.startswith(b"\x93NUMPY"):
        return _array_rows(raw)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TargetError("it is neither text nor a .npy array") from None
    if text.lstrip().startswith(("[", "{")):
        return _json_rows(text)
    lines = [line for line in text.splitlines() if line.strip()]
    for separator in (",", ";", "\t"):
        if any(separator in line for line in lines):
            return [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=separator)]
    return ["".join(line.split()) for line in lines]


def _array_rows(raw: bytes) -> list[list[Any]]:
    from .formats.archive import array_of

    array = array_of(raw, where="it")
    if isinstance(array, list) or array.ndim != 2 or array.dtype.kind not in "biuU":
        raise TargetError("its array must have two axes, and hold booleans, integers 0 and 1, or letters")
    return [[str(cell) for cell in row] for row in array.tolist()]


def _json_rows(text: str) -> list[Sequence[Any]]:
    from .formats.strict_json import loads

    rows = loads(text)
    if not isinstance(rows, list) or not all(isinstance(row, str | list) for row in rows):
        raise TargetError('its JSON must be a list of rows, such as [[1, 0], [1, 1]] or ["F.", "FL"]')
    return [row if isinstance(row, str) else [str(cell) for cell in row] for row in rows]


def _grid(rows: Iterable[Sequence[str]]) -> Kinds:
    """Cells as kinds.

    Raises:
        TargetError: there are none, rows differ in length, or a cell means nothing.
    """
    rows = list(rows)
    if not rows or not rows[0] or len({len(row) for row in rows}) != 1:
        raise TargetError(f"a mask must be rows of equal length of {_ALLOWED}")
    for number, row in enumerate(rows, 1):
        for cell in row:
            if cell not in _WORDS:
                raise TargetError(f"{cell[:20]!r} in row {number} is no block: write {_ALLOWED}")
    return tuple(tuple(_WORDS[cell] for cell in row) for row in rows)

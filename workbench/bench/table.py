"""The rows of suites and of papers as tables: CSV files in `data`, a line a row."""

from __future__ import annotations

from collections import namedtuple
from contextlib import suppress
from typing import Any

from ..output import data_rows
from ..products import sizes_of


def rows(name: str) -> list[Any]:
    """The rows of data/NAME.csv as named tuples: sizes, and what `value_of` makes of the other cells."""
    lines = data_rows(name, __package__)
    kind: Any = namedtuple(name, list(lines[0]))  # type: ignore[misc]
    return [kind(*(sizes_of(cell) if at == "sizes" else value_of(cell) for at, cell in one.items())) for one in lines]


def value_of(cell: str) -> Any:
    """A number, numbers such as 1024/16, yes or no, None for nothing, else the text."""
    for read in (int, float, _ints):
        with suppress(ValueError):
            return read(cell)
    return {"yes": True, "no": False, "": None}.get(cell, cell)


def _ints(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("/")))


LIMITS = {
    row["what"]: {dtype: float(cell) for dtype, cell in list(row.items())[1:] if cell}
    for row in data_rows("limits", __package__)
}
"""By what is compared and by dtype the largest relative error, in the Frobenius norm, that counts as rounding: a larger
one is a fault, and nothing is timed."""

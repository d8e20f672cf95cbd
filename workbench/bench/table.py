"""The rows of suites and of papers as tables: CSV files in `data`, a line a row."""

from __future__ import annotations

import csv
from collections import namedtuple
from collections.abc import Callable
from dataclasses import fields
from importlib.resources import files
from typing import Any, TypeVar, cast

from ..products import sizes_of

Row = TypeVar("Row")


def ints(text: str) -> tuple[int, ...]:
    """Numbers such as 1024/16."""
    return tuple(map(int, text.split("/")))


READ: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": "yes".__eq__,
    "Sizes": sizes_of,
    "Sized": ints,
}
"""Readers of cells, by the type that a field states."""


NUMBERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("full", "hits", "k", "n", "rank", "room", "rounds", "seeds", "size", "threads"), int),
    **dict.fromkeys(("bar", "least", "limit", "linear_ms", "median", "model_ms", "offline"), float),
    **dict.fromkeys(("paper", "paper_bmm", "ratio", "total", "within"), float),
    "sizes": sizes_of,
}
"""Readers of columns that hold no texts, by their names."""


def _lines(name: str) -> list[dict[str, str]]:
    text = (files(__package__) / "data" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def rows(name: str) -> list[Any]:
    """The rows of data/NAME.csv, each a named tuple of its columns; an empty cell is None, or "" where texts belong."""
    lines = _lines(name)
    kind: Any = namedtuple(name, list(lines[0]))  # type: ignore[misc]
    readers = [NUMBERS.get(column) for column in lines[0]]
    found = []
    for one in lines:
        cells = zip(readers, one.values(), strict=True)
        found.append(kind(*(cell if read is None else read(cell) if cell else None for read, cell in cells)))
    return found


def table(kind: type[Row], name: str, **others: Callable[[str], Any]) -> tuple[Row, ...]:
    """The rows of data/NAME.csv, each an object of a dataclass; an empty cell is None, or the default of its field.

    `others` are readers of cells of more types.
    """
    types = {one.name: str(one.type).split(" | ") for one in fields(cast(Any, kind))}
    found = []
    for row in _lines(name):
        values = {column: (READ | others)[types[column][0]](cell) if cell else None for column, cell in row.items()}
        found.append(kind(**{name: one for name, one in values.items() if one is not None or "None" in types[name]}))
    return tuple(found)

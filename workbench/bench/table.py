"""The rows of suites and of papers as tables: CSV files in `data`, a line a row."""

from __future__ import annotations

import csv
from collections import namedtuple
from collections.abc import Callable
from contextlib import suppress
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


def _lines(name: str) -> list[dict[str, str]]:
    text = (files(__package__) / "data" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def rows(name: str) -> list[Any]:
    """The rows of data/NAME.csv as named tuples: sizes, and numbers where cells are such; an empty cell is None."""
    lines = _lines(name)
    kind: Any = namedtuple(name, list(lines[0]))  # type: ignore[misc]
    return [kind(*(sizes_of(cell) if at == "sizes" else _value(cell) for at, cell in one.items())) for one in lines]


def _value(cell: str) -> int | float | str | None:
    for read in (int, float):
        with suppress(ValueError):
            return read(cell)
    return cell or None


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

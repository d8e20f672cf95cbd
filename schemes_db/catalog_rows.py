"""Rows of the catalogue: their columns, and the documents in them."""

from __future__ import annotations

import json

from .names import tidy_name
from .pareto import Entry

ENTRY_COLUMNS = (
    "digest",
    "name",
    "target",
    "ring",
    "rank",
    "full_products",
    "half_products",
    "additions",
    "additions_cse",
    "nonzeros",
    "growth",
    "ternary",
    "origin",
    "added",
)


def tidied(document: str) -> str:
    """A row's document, its name changed where it is one that no scheme may have: other programs write rows, too."""
    try:
        data = json.loads(document)
        if not isinstance(data, dict) or not isinstance(data.get("name", ""), str):
            return document
    except ValueError:
        return document
    name = data.get("name", "")
    return document if not name or tidy_name(name) == name else json.dumps({**data, "name": tidy_name(name)})


def entry_of_row(row: tuple[object, ...]) -> Entry:
    values = dict(zip(ENTRY_COLUMNS, row, strict=True))
    return Entry(**{**values, "ternary": bool(values["ternary"])})  # type: ignore[arg-type]  # STRICT tables

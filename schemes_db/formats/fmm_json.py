"""The JSON of the FastMatrixMultiplication database: dense rows u, v, w, the third factor by C transposed."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...errors import SchemeFormatError
from ..ring import Z2, Q, Ring
from ..target import Target
from . import equations
from .candidates import Row, reading_of_rows
from .fmm_reduced import sizes_of, unknown_fields
from .reading import (
    C_TRANSPOSED,
    Reading,
    parse_coefficient,
)
from .strict_json import loads, need

NAME = "fmm-json"
SUFFIX = ".json"
CONVENTION = C_TRANSPOSED

_TEXT_FIELDS = ("multiplications", "elements", "complexity")


def sniff(text: str) -> bool:
    """Return whether this is a JSON object with sizes n and rows u."""
    return text.lstrip().startswith("{") and all(f'"{key}"' in text for key in ("n", "m", "u"))


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read one full scheme; both conventions become candidates.

    Raises:
        SchemeFormatError: a field is missing, rows are ragged, or sizes disagree.
    """
    data = loads(text)
    if not isinstance(data, dict):
        raise SchemeFormatError("a scheme must be a JSON object")
    shape = Target.general(*sizes_of(data))
    if target is not None and target.shape != shape.shape:
        raise SchemeFormatError(f"the file says {shape}, not {target}")
    rank = need(data, "m", int)
    m, k, n = shape.shape
    u, v, w = (_rows(data, key, rank, size) for key, size in (("u", m * k), ("v", k * n), ("w", m * n)))
    ring = ring or (Z2 if data.get("z2") is True else None)
    known = {"n", "m", "z2", "u", "v", "w", *_TEXT_FIELDS}
    reading = reading_of_rows(NAME, (u, v, w), shape.shape, CONVENTION, target, ring, unknown_fields(data, known))
    reading = equations.agreeing(reading, equations.listed_text(data, "multiplications", "elements"))
    return [dataclasses.replace(reading, declared=ring or (Q if data.get("z2") is False else None))]


def _rows(data: dict[str, Any], key: str, rank: int, size: int) -> list[Row]:
    rows = need(data, key, list)
    if len(rows) != rank:
        raise SchemeFormatError(f"{key} has {len(rows)} rows, but the rank m is {rank}")
    result: list[Row] = []
    for r, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != size:
            found = len(row) if isinstance(row, list) else "no list"
            raise SchemeFormatError(f"{key} row {r + 1} must have {size} entries, not {found}")
        if set(map(type, row)) != {int}:
            row = [parse_coefficient(value, f"{key} row {r + 1}") for value in row]
        result.append([(index, value) for index, value in enumerate(row) if value])
    return result

"""Products whose factors are lists of their coefficients: `[i, j, value]` each, or `{"a11": 1, "a22": -1}`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import SchemeFormatError
from ..target import MAX_DIMENSION
from .arithmetic import is_number
from .arrays import MAX_ENTRIES, ROLES, Array
from .naming import letters_of, place_of

Coefficients = list[tuple[int, int, Any]]
"""Row, column and value of each."""


def sparse_products(parts: Sequence[Sequence[Any]]) -> list[Array] | None:
    """The factors, (R, rows, cols) each, of the three parts of every product; None where one is no such list.

    Indices count from 0 if one of them is 0, else from 1.

    Raises:
        SchemeFormatError: a coefficient is said twice, or of a block of another factor, or an index is too large.
    """
    found = [[_coefficients(part) for part in three] for three in parts]
    if not found or any(not part for three in found for part in three):
        return None
    for slot in range(3):
        letters = {letters_of(name) for three in parts for name in three[slot] if isinstance(name, str)}
        if len(letters) > 1 or any(letters & set(ROLES[other]) for other in range(3) if other != slot):
            raise SchemeFormatError(f"blocks of {', '.join(sorted(letters))} in the factor {'ABC'[slot]}")
    entries = [(r, slot, *one) for r, three in enumerate(found) for slot in range(3) for one in three[slot] or ()]
    base = min(1, *(min(row, col) for _, _, row, col, _ in entries))
    sizes = [[1 + max(one[axis] for one in entries if one[1] == slot) - base for axis in (2, 3)] for slot in range(3)]
    if max(map(max, sizes)) > MAX_DIMENSION or len(parts) * max(rows * cols for rows, cols in sizes) > MAX_ENTRIES:
        raise SchemeFormatError(f"a block beyond {MAX_DIMENSION}, or more than {MAX_ENTRIES} entries")
    if len({one[:4] for one in entries}) < len(entries):
        raise SchemeFormatError("a coefficient is set twice")
    factors = [np.zeros((len(parts), *size), dtype=object) for size in sizes]
    for r, slot, row, col, value in entries:
        factors[slot][r, row - base, col - base] = value
    return factors


def _coefficients(part: Any) -> Coefficients | None:
    """The coefficients that a value lists; none where it is no list of them."""
    if isinstance(part, dict):
        places = [place_of(name) for name in part] if all(map(is_number, part.values())) else []
        return [(row, col, value) for (row, col), value in zip(places, part.values(), strict=False)]
    if not isinstance(part, list):
        return None
    fitting = (
        isinstance(one, list)
        and len(one) == 3
        and all(type(index) is int and index >= 0 for index in one[:2])
        and is_number(one[2])
        for one in part
    )
    return [(row, col, value) for row, col, value in part] if all(fitting) else None

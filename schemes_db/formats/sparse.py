"""Products whose factors are lists of their coefficients: `[i, j, value]` each, or `{"a11": 1, "a22": -1}`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import SchemeFormatError
from ..target import MAX_DIMENSION
from .arithmetic import is_number
from .arrays import ROLES
from .naming import letters_of, place_of


def sparse_products(parts: Sequence[Sequence[Any]]) -> list[tuple[int, int, int, int, Any]]:
    """The coefficients in the three parts of every product, as `reading_of_coefficients` takes them.

    Empty where a part is no list of them.

    Raises:
        SchemeFormatError: blocks of another factor.
    """
    found = [(slot, r, _coefficients(part)) for r, three in enumerate(parts) for slot, part in enumerate(three)]
    if not all(part for *_, part in found):
        return []
    for slot in range(3):
        names = {name for three in parts for name in (three[slot] if isinstance(three[slot], dict) else ())}
        letters = set(map(letters_of, names))
        if len(letters) > 1 or any(letters & set(ROLES[other]) for other in range(3) if other != slot):
            raise SchemeFormatError(f"blocks of {', '.join(sorted(letters))} in the factor {'ABC'[slot]}")
    return [(slot, r, *one) for slot, r, part in found for one in part]


def _coefficients(part: Any) -> list[tuple[int, int, Any]]:
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

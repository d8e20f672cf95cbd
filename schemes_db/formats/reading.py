"""What a format's reader returns, and the checks that all readers share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from ...errors import SchemeFormatError
from ..certificate import Certificate
from ..factor import COEFFICIENT_LIMIT, Factor
from ..ring import Q, Ring, Z
from ..scheme import MAX_RANK, Scheme

C = "C"
C_TRANSPOSED = "C^T"

Term = tuple[int, int, Fraction]
"""One nonzero of a factor's product: 0-based row and column, and the coefficient."""


@dataclass(frozen=True)
class Reading:
    """One scheme as a file gives it, before it is verified.

    `candidates` are (convention, scheme) pairs: what the file says if its third factor is indexed
    by C, or by the transpose of C; the format's documented convention first. Which one computes
    the target only verification can tell.
    """

    format: str
    candidates: tuple[tuple[str, Scheme], ...]
    certificate: Certificate | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def scheme(self) -> Scheme:
        """The scheme by the format's documented convention."""
        return self.candidates[0][1]


def parse_coefficient(value: object, where: str) -> Fraction:
    """An integer or a "p/q" string as a fraction.

    Raises:
        SchemeFormatError: anything else, floats and booleans included.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise SchemeFormatError(f'{where}: {value!r} is not a coefficient; write an integer or "p/q"')
    try:
        fraction = Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise SchemeFormatError(f'{where}: {value!r} is not a coefficient; write an integer or "p/q"') from None
    if isinstance(value, str) and not set(value) <= set("+-0123456789/ "):
        raise SchemeFormatError(f'{where}: {value!r} is not a coefficient; write an integer or "p/q"')
    return fraction


def factor_of(products: Sequence[Iterable[Term]], rows: int, cols: int, label: str) -> Factor:
    """The factor of the terms of every product, over their least common denominator.

    Raises:
        SchemeFormatError: a place outside the grid or given twice, a number too large, too many products.
    """
    if not 1 <= len(products) <= MAX_RANK:
        raise SchemeFormatError(f"a scheme has 1 to {MAX_RANK} products, not {len(products)}")
    triplets: list[tuple[int, int, Fraction]] = []
    for r, terms in enumerate(products):
        seen: set[int] = set()
        for row, col, value in terms:
            if not (0 <= row < rows and 0 <= col < cols):
                raise SchemeFormatError(
                    f"product {r + 1}: {label} has block [{row + 1},{col + 1}], outside its {rows} x {cols} grid"
                )
            index = row * cols + col
            if index in seen:
                raise SchemeFormatError(f"product {r + 1}: {label} has block [{row + 1},{col + 1}] twice")
            seen.add(index)
            triplets.append((r, index, value))
    denominator = math.lcm(*{value.denominator for _, _, value in triplets}) if triplets else 1
    numerators = [int(value * denominator) for _, _, value in triplets]
    if denominator >= COEFFICIENT_LIMIT or any(abs(number) >= COEFFICIENT_LIMIT for number in numerators):
        raise SchemeFormatError(f"{label} has a coefficient or common denominator beyond 2^62")
    product = np.array([r for r, _, _ in triplets], dtype=np.int64)
    places = np.array([index for _, index, _ in triplets], dtype=np.int64)
    return Factor.from_triplets(
        len(products), rows, cols, product, places, np.array(numerators, dtype=np.int64), denominator
    )


def ring_of(factors: Iterable[Factor]) -> Ring:
    """Z, or Q where a factor has a denominator."""
    return Q if any(factor.denominator != 1 for factor in factors) else Z

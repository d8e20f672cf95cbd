"""What a format's reader returns, and the checks that all readers share."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...errors import SchemeFormatError
from ..certificate import Certificate
from ..factor import COEFFICIENT_LIMIT, Factor, IntArray
from ..gaussian import Number, gaussian, parse_number, simplest
from ..ring import QI, Q, Ring, Z
from ..scheme import MAX_RANK, Scheme

C = "C"
C_TRANSPOSED = "C^T"

Term = tuple[int, int, Number]
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


def parse_coefficient(value: object, where: str) -> Number:
    """An integer, or a string such as "1/2" or "1/2-3i", as an exact number.

    Raises:
        SchemeFormatError: anything else, floats and booleans included.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        with contextlib.suppress(ValueError, ZeroDivisionError):
            return parse_number(value)
    raise SchemeFormatError(f'{where}: {value!r} is not a coefficient; write an integer or "p/q"')


def render_coefficient(value: Number) -> int | str:
    """What `parse_coefficient` reads back: an integer where it is one, else text."""
    simple = simplest(value)
    return simple if isinstance(simple, int) else str(simple)


def refuse_gaussian(scheme: Scheme, format: str) -> None:
    """Raise SchemeFormatError for a scheme whose coefficients a format has no way to write."""
    if scheme.gaussian:
        raise SchemeFormatError(f"{format} can't write coefficients that are not real; write {scheme!r} as lcma-json")


def factor_of(products: Sequence[Iterable[Term]], rows: int, cols: int, label: str) -> Factor:
    """The factor of the terms of every product, over their least common denominator.

    Raises:
        SchemeFormatError: a place outside the grid or given twice, a number too large, too many products.
    """
    if not 1 <= len(products) <= MAX_RANK:
        raise SchemeFormatError(f"a scheme has 1 to {MAX_RANK} products, not {len(products)}")
    owners: list[int] = []
    places: list[int] = []
    numbers: list[Number] = []
    for r, terms in enumerate(products):
        first = len(places)
        for row, col, value in terms:
            if not (0 <= row < rows and 0 <= col < cols):
                raise SchemeFormatError(
                    f"product {r + 1}: {label} has block [{row + 1},{col + 1}], outside its {rows} x {cols} grid"
                )
            places.append(row * cols + col)
            numbers.append(value)
        owners += [r] * (len(places) - first)
        if len(seen := places[first:]) != len(set(seen)):
            row, col = divmod(next(place for place in seen if seen.count(place) > 1), cols)
            raise SchemeFormatError(f"product {r + 1}: {label} has block [{row + 1},{col + 1}] twice")
    values, denominator = _numerators(numbers, label)
    product, indices = np.array(owners, dtype=np.int64), np.array(places, dtype=np.int64)
    return Factor.from_triplets(len(products), rows, cols, product, indices, values, denominator)


def _numerators(numbers: list[Number], label: str) -> tuple[IntArray, int]:
    """The numbers (T,), or (T, 2) where one is not real, over their least common denominator."""
    parts: list[int] = []
    denominator = 1
    if all(isinstance(number, int) for number in numbers):
        parts, shape = numbers, (len(numbers),)  # type: ignore[assignment]
    else:
        pairs = [part for number in map(gaussian, numbers) for part in (number.real, number.imag)]
        denominator = math.lcm(*{part.denominator for part in pairs})
        parts, shape = [int(part * denominator) for part in pairs], (len(numbers), 2)  # type: ignore[assignment]
    if denominator >= COEFFICIENT_LIMIT or any(abs(part) >= COEFFICIENT_LIMIT for part in parts):
        raise SchemeFormatError(f"{label} has a coefficient or common denominator beyond 2^62")
    return np.array(parts, dtype=np.int64).reshape(shape), denominator


def ring_of(factors: Iterable[Factor]) -> Ring:
    """Z, Q where a factor has a denominator, Q(i) where one has an imaginary part."""
    factors = tuple(factors)
    if any(factor.gaussian for factor in factors):
        return QI
    return Q if any(factor.denominator != 1 for factor in factors) else Z

"""The one coefficient of a wrong scheme whose change makes it valid, if there is one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

from ..schemes_db import Scheme
from ..schemes_db.factor import Factor
from .expansion import term_count

MAX_TERMS = 300_000
"""Terms of all products expanded up to which the search is made."""

Place = tuple[int, int, int]
"""Flat indices of blocks of A, B and C."""

Rows = list[list[dict[int, Fraction]]]
"""For each factor and product the coefficients by flat index."""


def nearest(scheme: Scheme) -> str:
    """Return what one coefficient would have to be, such as "product 7, b23 is 2, not 1"; nothing if no one helps.

    Schemes with complex or very large coefficients are not searched.
    """
    if scheme.gaussian or scheme.large or term_count(scheme) > MAX_TERMS:
        return ""
    modulus = scheme.ring.characteristic
    rows: Rows = [[_row(factor, r) for r in range(scheme.rank)] for factor in scheme.factors]
    found = list(_changes(_residuals(scheme, rows, modulus), rows, modulus))
    if not found:
        return ""
    new, old, r, slot, place = min(found, key=lambda change: (change[0].denominator, abs(change[0]), change[2:]))
    row, col = divmod(place, scheme.factors[slot].cols)
    index = f"{row + 1}{col + 1}" if max(scheme.target.shape) < 10 else f"[{row + 1},{col + 1}]"
    return f"one coefficient from right: product {r + 1}, {'abc'[slot]}{index} should be {new}, not {old}"


def _changes(
    wrong: dict[Place, Fraction], rows: Rows, modulus: int
) -> Iterator[tuple[Fraction, Fraction, int, int, int]]:
    """Yield each change of one coefficient that makes all equations hold: new and old value, product, factor, block."""
    for slot in range(3):
        places = {place[slot] for place in wrong}
        if len(places) != 1:
            continue
        (place,) = places
        others = [other for other in range(3) if other != slot]
        table = {tuple(key[other] for other in others): value for key, value in wrong.items()}
        for r, (first, second) in enumerate(zip(*(rows[other] for other in others), strict=True)):
            if table.keys() != {(i, j) for i in first for j in second}:
                continue
            ratios = {_quotient(value, first[i] * second[j], modulus) for (i, j), value in table.items()}
            if len(ratios) == 1 and (ratio := ratios.pop()) is not None:
                old = Fraction(rows[slot][r].get(place, 0))
                yield (old - ratio) % modulus if modulus else old - ratio, old, r, slot, place


def _residuals(scheme: Scheme, rows: Rows, modulus: int) -> dict[Place, Fraction]:
    """Return got - wanted of every equation that fails, by flat block indices."""
    sums: dict[Place, Fraction] = defaultdict(Fraction)
    for left, right, out in zip(*rows, strict=True):
        for p, x in left.items():
            for q, y in right.items():
                for s, z in out.items():
                    sums[p, q, s] += x * y * z
    for (p, q, s), value in scheme.target.coefficients.items():
        sums[p, q, s] -= value
    return {place: value for place, value in sums.items() if (value % modulus if modulus else value)}


def _row(factor: Factor, r: int) -> dict[int, Fraction]:
    return {index: Fraction(value, factor.denominator) for index, value in factor.terms(r)}


def _quotient(value: Fraction, by: Fraction, modulus: int) -> Fraction | None:
    if not modulus:
        return value / by
    divisor = int(by) % modulus
    return Fraction(int(value) * pow(divisor, -1, modulus) % modulus) if divisor else None

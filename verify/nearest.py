"""The one coefficient of a wrong scheme whose change makes it valid, if there is one."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np

from ..schemes_db import Scheme

MAX_TERMS = 300_000
"""Terms of all products expanded up to which the search is made."""

Place = tuple[int, int, int]


def nearest(scheme: Scheme) -> str:
    """Return what one coefficient would have to be, such as "product 7, b23 is 2, not 1"; nothing if no one helps.

    Schemes with complex or very large coefficients are not searched.
    """
    left, right, outputs = (np.diff(factor.indptr) for factor in scheme.factors)
    if scheme.gaussian or scheme.large or int((left * right * outputs).sum()) > MAX_TERMS:
        return ""
    modulus = scheme.ring.characteristic
    rows = [[dict(factor.coefficients(r)) for r in range(scheme.rank)] for factor in scheme.factors]
    wrong = _residuals(scheme, rows, modulus)
    for slot in range(3):
        places = {place[slot] for place in wrong}
        if len(places) != 1:
            continue
        (place,) = places
        others = [other for other in range(3) if other != slot]
        table = {tuple(key[other] for other in others): value for key, value in wrong.items()}
        for r in range(scheme.rank):
            first, second = (rows[other][r] for other in others)
            if table.keys() != {(i, j) for i in first for j in second}:
                continue
            ratios = {_quotient(value, first[i] * second[j], modulus) for (i, j), value in table.items()}
            if len(ratios) == 1 and (ratio := ratios.pop()) is not None:
                old = Fraction(rows[slot][r].get(place, 0))  # type: ignore[arg-type]
                new = (old - ratio) % modulus if modulus else old - ratio
                row, col = divmod(place, scheme.factors[slot].cols)
                index = f"{row + 1}{col + 1}" if max(scheme.target.shape) < 10 else f"[{row + 1},{col + 1}]"
                return f"one coefficient from right: product {r + 1}, {'abc'[slot]}{index} should be {new}, not {old}"
    return ""


def _residuals(scheme: Scheme, rows: list[list[dict[int, Fraction]]], modulus: int) -> dict[Place, Fraction]:  # type: ignore[type-arg]
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


def _quotient(value: Fraction, by: Fraction, modulus: int) -> Fraction | None:
    if not modulus:
        return value / by
    divisor = int(by) % modulus
    return Fraction(int(value) * pow(divisor, -1, modulus) % modulus) if divisor else None

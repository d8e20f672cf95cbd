"""Traffic of one level of a scheme between memory and a cache, as ECA counts it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ...schemes_db.costs import nonzeros
from ...schemes_db.scheme import Scheme
from .savings import of_product


@dataclass(frozen=True)
class Traffic:
    """Elements moved between memory and a cache of M elements, as factors of each step's reference quantity.

    `products`: of (L d)^2 / M, and `operand` of the elements of A besides. `uploads`: of the
    elements of C, for storing the products, `merge` for reading them again, `result` for C.
    """

    products: Fraction
    operand: Fraction
    uploads: Fraction
    merge: Fraction
    result: Fraction


PRINTED = {
    "QK": Traffic(Fraction(296, 256), Fraction(72, 16), Fraction(34, 16), Fraction(72, 16), Fraction(1, 2)),
    "PV": Traffic(Fraction(296, 256), Fraction(71, 16), Fraction(34, 16), Fraction(68, 16), Fraction(1)),
}
"""The values that ECA, section 3.3, gives."""

CLASSICAL = {
    "QK": Traffic(Fraction(1, 2), Fraction(1), Fraction(0), Fraction(0), Fraction(1, 2)),
    "PV": Traffic(Fraction(1, 2), Fraction(1), Fraction(0), Fraction(0), Fraction(1)),
}


def traffic(scheme: Scheme, product: str) -> Traffic:
    """Return the traffic of one level: every sum is read where it is used, every product is written and read.

    Source: ECA, section 3.3, with the terms counted here.
    """
    turned = of_product(scheme, product)
    left, right, out = nonzeros(turned)
    n = turned.target.m
    return Traffic(
        Fraction(right * n, n**4),
        Fraction(left, n**2),
        Fraction(turned.rank, n**2),
        Fraction(out, n**2),
        CLASSICAL[product].result,
    )

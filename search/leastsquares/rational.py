"""Rational factors as a scheme: numerators as small as scalings of products and of bases allow."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...schemes_db import Q, Scheme, Target, Z

LARGEST = 1 << 15
"""Largest numerator or denominator: larger ones are no simple values, and their products may not fit 64 bits."""

RATIOS = (Fraction(2), Fraction(1, 2), Fraction(3), Fraction(1, 3))
"""What a basis vector is multiplied by, if that leaves smaller denominators."""

Rationals = npt.NDArray[Any]
"""(R, blocks) of Fractions."""


def scheme_of(target: Target, factors: Sequence[Rationals]) -> Scheme | None:
    """Return the scheme of the factors U, V and W of a full product, in a basis with small denominators, or None.

    None means that the factors do not solve the equations, which integers decide, or a coefficient beyond LARGEST.
    """
    if any(not factor.any(axis=1).all() for factor in factors):
        return None  # a product without an entry
    numerators, denominators = [], []
    for factor in _simplest(target, factors):
        common = lcm(*(entry.denominator for entry in factor.flat))
        if max(common, *(abs(entry.numerator) for entry in factor.flat)) > LARGEST:
            return None
        numerators.append(np.array((factor * common).tolist(), dtype=np.int64))
        denominators.append(common)
    wanted = np.zeros(tuple(factor.shape[1] for factor in numerators), dtype=np.int64)
    wanted[tuple(target.terms.T)] = target.term_values
    if not np.array_equal(np.einsum("ra,rb,rc->abc", *numerators, optimize=True), wanted * prod(denominators)):
        return None
    u, v, w = (f.reshape(-1, *kinds.shape) for f, kinds in zip(numerators, target.kind_arrays, strict=True))
    a, b, c = denominators
    return Scheme.from_arrays(target, u, v, w, Z if a * b * c == 1 else Q, denominators=(a, b, c))


def _simplest(target: Target, factors: Sequence[Rationals]) -> list[Rationals]:
    """Return factors with primitive integers in U and V and, after scalings of the bases, small denominators in W."""
    best = _primitive(factors)
    price = _price(best)
    improved = True
    while improved and price:
        improved = False
        for side in range(3):
            for index in range(target.shape[side]):
                for ratio in RATIOS:
                    scaled = _primitive(_scaled(target, best, side, index, ratio))
                    if (its_price := _price(scaled)) < price:
                        best, price, improved = scaled, its_price, True
    return best


def _primitive(factors: Sequence[Rationals]) -> list[Rationals]:
    """Return the factors with the rows of U and V scaled to coprime integers, which W makes up for."""
    u, v, w = (factor.copy() for factor in factors)
    for factor in (u, v):
        for row, other in zip(factor, w, strict=True):
            entries = [entry for entry in row if entry]
            content = Fraction(
                gcd(*(entry.numerator for entry in entries)), lcm(*(entry.denominator for entry in entries))
            )
            row /= content
            other *= content
    return [u, v, w]


def _price(factors: Sequence[Rationals]) -> int:
    """Return how far W is from integers: the sum over the products of the bits of its denominators."""
    return sum(lcm(*(entry.denominator for entry in row)).bit_length() - 1 for row in factors[2])


def _scaled(target: Target, factors: Sequence[Rationals], side: int, index: int, ratio: Fraction) -> list[Rationals]:
    """Return the factors with a basis vector of the side m, k or n multiplied: one operand by `ratio`, one by 1/ratio.

    A row of A and the same row of C; a column of A and the row of B; a column of B and the same column of C.
    """
    u, v, w = (f.reshape(-1, *kinds.shape).copy() for f, kinds in zip(factors, target.kind_arrays, strict=True))
    (one, first), (other, second) = (((u, 1), (w, 1)), ((u, 2), (v, 1)), ((v, 2), (w, 2)))[side]
    one.swapaxes(0, first)[index] *= ratio
    other.swapaxes(0, second)[index] /= ratio
    return [factor.reshape(len(factor), -1) for factor in (u, v, w)]

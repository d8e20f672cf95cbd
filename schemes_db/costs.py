"""Costs of a scheme: products by kind, additions, nonzeros, growth. Pure functions of the scheme."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from .factor import Factor
from .grids import Kind
from .program import Coefficient, Lin, Load, Product, ProductKind, Program
from .scheme import Scheme

FloatArray = npt.NDArray[np.float64]

_SIDES = (
    ("w", 2, ProductKind.HALF_OUT, ProductKind.HALF_OUT_UPPER),
    ("u", 0, ProductKind.HALF_LEFT, ProductKind.HALF_LEFT_UPPER),
    ("v", 1, ProductKind.HALF_RIGHT, ProductKind.HALF_RIGHT_UPPER),
)


def product_kinds(scheme: Scheme) -> tuple[ProductKind, ...]:
    """The kind of every product, derived from where its factors stand.

    A product is half when all outputs it feeds are the same half, or when all blocks of its left
    (or right) sum are the same half: then one triangle of it is enough, or is all there is.
    """
    kinds = [ProductKind.FULL] * scheme.rank
    for slot, operand, lower, upper in _SIDES:
        grid = scheme.target.kind_arrays[operand].ravel()
        factor: Factor = getattr(scheme, slot)
        for wanted, label in ((Kind.LOWER, lower), (Kind.UPPER, upper)):
            if not (grid == wanted).any():
                continue
            inside = np.bincount(factor.product, weights=grid[factor.indices] == wanted, minlength=scheme.rank)
            for r in np.flatnonzero((inside == np.diff(factor.indptr)) & (inside > 0)):
                if kinds[r] is ProductKind.FULL:
                    kinds[r] = label
    return tuple(kinds)


def full_and_half(scheme: Scheme) -> tuple[int, int]:
    """(F, H): how many products are full and how many half."""
    half = sum(kind.half for kind in product_kinds(scheme))
    return scheme.rank - half, half


def level_products(scheme: Scheme) -> Fraction:
    """F + H/2: the products of one level, a half one counted as half of one."""
    full, half = full_and_half(scheme)
    return full + Fraction(half, 2)


def one_level_cost(scheme: Scheme) -> Fraction:
    """(F + H/2) / (m k n): multiplications of one level over those of the dense classical product.

    Of a map that is no product of matrices: over the number of its terms.
    """
    classical = math.prod(scheme.target.shape) if scheme.target.is_product else len(scheme.target.terms)
    return level_products(scheme) / classical


def recursive_cost(scheme: Scheme) -> Fraction | None:
    """F / (m k n - H): the same where halves recurse and full products are classical; None without halves."""
    full, half = full_and_half(scheme)
    return Fraction(full, math.prod(scheme.target.shape) - half) if half else None


def gram_products(scheme: Scheme) -> int:
    """Return the number of products of a scheme for A A^T with V = U^T or -U^T: they are X X^T and recurse."""
    if not scheme.target.shared:
        return 0
    turned = scheme.v.transposed()
    sides = ((scheme.u.coefficients(r), turned.coefficients(r)) for r in range(scheme.rank))
    return sum(left in (right, [(block, value * -1) for block, value in right]) for left, right in sides)


def exponent(scheme: Scheme) -> float | None:
    """omega = 3 log R / log(m k n) of a general scheme; None for 1x1x1 and for structured targets."""
    size = math.prod(scheme.target.shape)
    return 3 * math.log(scheme.rank) / math.log(size) if scheme.target.is_general and size > 1 else None


def nonzeros(scheme: Scheme) -> tuple[int, int, int]:
    """The number of nonzero coefficients of U, V and W."""
    return scheme.u.nnz, scheme.v.nnz, scheme.w.nnz


def additions(scheme: Scheme) -> int:
    """Block additions when every sum is computed on its own."""
    left, right = (int(np.maximum(np.diff(factor.indptr) - 1, 0).sum()) for factor in (scheme.u, scheme.v))
    return left + right + scheme.w.nnz - len(np.unique(scheme.w.indices))


def growth_factor(scheme: Scheme) -> float:
    """max over outputs of sum_r |W| ||U_r||_1 ||V_r||_1, the stability factor of one level.

    Source: Ballard, Benson, Druinsky, Lipshitz, Schwartz, "Improving the numerical stability of
    fast matrix multiplication" (2016), the quantity e_max; 12 for Strassen, 18 for Winograd.
    """
    sizes = [
        np.bincount(factor.product, weights=_magnitudes(factor), minlength=factor.rank) / factor.denominator
        for factor in (scheme.u, scheme.v)
    ]
    weights = _magnitudes(scheme.w) / scheme.w.denominator * (sizes[0] * sizes[1])[scheme.w.product]
    return float(np.bincount(scheme.w.indices, weights=weights).max()) if scheme.w.nnz else 0.0


def growth_and_roundings(program: Program) -> tuple[float, int]:
    """Return the stability factor of a program's outermost level, and the most roundings of a term of an output.

    The roundings are those of sums, without the product's own. Sums are computed one term after the other: a sum of t
    terms rounds t - 1 times, and the factor of a term as often as `_roundings` says. Without shared sums these are
    the quantities E and Q of the source of `growth_factor`.
    """
    sizes: dict[int, tuple[float, int]] = {}
    growth, most = 0.0, 0
    for op in program.ops:
        if isinstance(op, Load):
            sizes[op.dst] = 1.0, 0
        elif isinstance(op, Product):
            (left, before), (right, also) = sizes[op.left], sizes[op.right]
            sizes[op.dst] = left * right, before + also
        else:
            norm = sum(abs(float(coefficient)) * sizes[src][0] for coefficient, src in op.terms)
            scaled = max(_roundings(coefficient) for coefficient, _ in op.terms)
            roundings = len(op.terms) - 1 + scaled + max(sizes[src][1] for _, src in op.terms)
            if isinstance(op, Lin):
                sizes[op.dst] = norm, roundings
            else:
                growth, most = max(growth, norm), max(most, roundings)
    return growth, most


def _roundings(coefficient: Coefficient) -> int:
    """Return the roundings of a multiplication by a coefficient: 0 for +-2^e, 1 if dyadic, else 2."""
    if coefficient in (1, -1):
        return 0
    value = Fraction(coefficient)
    if value.denominator & (value.denominator - 1):
        return 2
    return int(abs(value.numerator).bit_count() > 1)


def _magnitudes(factor: Factor) -> FloatArray:
    """The absolute values of the numerators."""
    values: FloatArray = factor.values.astype(np.float64)
    if factor.gaussian:
        values = np.hypot(values[:, 0], values[:, 1])
    return np.abs(values)

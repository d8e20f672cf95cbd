"""Operations and memory traffic of the two products of attention with a scheme, as ECA counts them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ...errors import PlanError
from ...schemes_db.costs import nonzeros, product_kinds
from ...schemes_db.grids import Kind
from ...schemes_db.scheme import Scheme
from ...schemes_db.symmetry import ATTENTION_PRODUCTS, Triangle, derive
from ..bench.table import rows

MODELS = rows("attention_models")
"""Models' attention, ECA's figure 1: the head dimension and the longest context, both in elements. Sizes are from their
reports (arXiv 2508.10925, 2505.09388, 2508.06471)."""


@dataclass(frozen=True)
class Operations:
    """Numbers of scalar multiplications and additions."""

    multiplications: int
    additions: int

    @property
    def total(self) -> int:
        return self.multiplications + self.additions

    def __add__(self, other: Operations) -> Operations:
        return Operations(self.multiplications + other.multiplications, self.additions + other.additions)


def standard(product: str, length: int, width: int) -> Operations:
    """Count the operations of QK, (length, width) times its transpose, or PV, on the triangle only, row by row.

    Source: ECA, section 3.2.
    """
    return _triangle(ATTENTION_PRODUCTS[product], length, width)


def operations(scheme: Scheme, product: str, length: int, width: int, levels: int = 1) -> Operations:
    """Count them with levels of a scheme for triangular products: half products recurse, full ones are classical.

    Sums are counted without sharing; a sum of half blocks has half as many
    elements. Sizes that are no multiple of the grid are rounded up.

    Raises:
        PlanError: levels are negative, or the scheme is not for triangular products or has no square grid.
    """
    if levels < 0:
        raise PlanError("levels must be at least 0")
    triangle = ATTENTION_PRODUCTS[product]
    if levels == 0:
        return _triangle(triangle, length, width)
    turned = of_product(scheme, product)
    parts = turned.target.m
    length, width = -(-length // parts), -(-width // parts)
    half = operations(scheme, product, length, width, levels - 1)
    full = _full(length, width, length) if triangle.side == "out" else _full(length, length, width)
    total = Operations(0, _sums(turned, triangle, length, width))
    for kind in product_kinds(turned):
        total += half if kind.half else full
    return total


def saved(scheme: Scheme, product: str, length: int, width: int, levels: int = 1) -> float:
    """Return the fraction of the standard algorithm's operations that a scheme saves, additions included."""
    return 1 - operations(scheme, product, length, width, levels).total / standard(product, length, width).total


@lru_cache(maxsize=64)
def of_product(scheme: Scheme, product: str) -> Scheme:
    """Return the scheme transformed to one of the attention products, on its own square grid."""
    m, k, n = scheme.target.shape
    if not m == k == n:
        raise PlanError(f"{scheme.target} has no square grid")
    return derive(scheme, ATTENTION_PRODUCTS[product].target(m, m, m))


def _triangle(triangle: Triangle, length: int, width: int) -> Operations:
    cells = length * (length + 1) // 2
    if triangle.side == "out":
        return Operations(cells * width, cells * (width - 1))
    return Operations(cells * width, (cells - length) * width)


def _full(m: int, k: int, n: int) -> Operations:
    return Operations(m * k * n, m * n * (k - 1))


def _sums(scheme: Scheme, triangle: Triangle, length: int, width: int) -> int:
    """Count the scalar additions of the sums of blocks of A and B, and of the blocks of C."""
    square, wide = length * length, length * width
    sizes = (wide, wide, square) if triangle.side == "out" else (square, wide, wide)
    total = 0
    for factor, kinds, size, slot in zip(scheme.factors, scheme.target.kind_arrays, sizes, range(3), strict=True):
        terms = factor.dense.reshape(scheme.rank, -1) != 0
        halves = (kinds.ravel() == Kind.LOWER) | (kinds.ravel() == Kind.UPPER)
        part = length * (length + 1) // 2
        if slot < 2:  # one sum per product
            for row in terms:
                total += (int(row.sum()) - 1) * (part if not (row & ~halves).any() else size)
        else:  # one sum per block of C
            for count, half in zip(terms.sum(axis=0), halves, strict=True):
                total += max(int(count) - 1, 0) * (part if half else size)
    return total


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

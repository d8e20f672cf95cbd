"""Products of tensors by the factors of a chain, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .blocks import empty_result, is_batch_first
from .executor import Product
from .gather import multiply_gathered
from .pattern import Pattern
from .permuted import BMM, by_bmm
from .rewrites import BY_HALVES
from .split import multiply_split
from .tensors import multiply_strided, multiply_tiled
from .tiles import tile_of

Tensor = Any
Factors = Sequence[Tensor]

FactorProduct = Callable[[Tensor, Pattern, Tensor, Tensor], None]
"""multiply(weights, pattern, x, out): out (rows, n) = K x for x (cols, n)."""

STRIDED, TILED, GATHER, FUSED, TRANSPOSED = "strided", "tiled", "gather", "fused", "transposed"

MULTIPLY: dict[str, FactorProduct] = {
    STRIDED: multiply_strided,
    GATHER: multiply_gathered,
    BY_HALVES: multiply_split,
    BMM: by_bmm,
}
"""The products of one factor by strategy, without those of `tiled`."""


def product_of(strategy: str, patterns: Sequence[Pattern], dtype: str, tile: int = 0) -> Product:
    """Return the product by all factors, right-most first; `tile` is the choice of the kernel's tile.

    Results between factors are batch-last; those of BMM are stored as X is.
    """
    multiply = partial(_tiled, dtype, tile) if strategy == TILED else MULTIPLY[strategy]
    return partial(_factor_by_factor, multiply, tuple(patterns), strategy == BMM)


def _factor_by_factor(
    multiply: FactorProduct, patterns: Sequence[Pattern], as_given: bool, factors: Factors, x: Tensor, out: Tensor
) -> None:
    for place in reversed(range(1, len(patterns))):
        target = empty_result(x, patterns[place].rows, first=as_given and is_batch_first(x))
        multiply(factors[place], patterns[place], x, target)
        x = target
    multiply(factors[0], patterns[0], x, out)


def _tiled(dtype: str, tile: int, weights: Tensor, pattern: Pattern, x: Tensor, out: Tensor) -> None:
    multiply_tiled(weights, pattern, x, out, dtype, tile_of(dtype, pattern, tile))

"""Rewritten factors of the same matrix: larger blocks, or halves of float16, computed once."""

from __future__ import annotations

from collections.abc import Sequence

from ..arrays import zeros
from .blocks import Array
from .chain import FactorChain, KroneckerSparse
from .pattern import Pattern
from .split import split_factor, split_factor_bytes

WIDENED, DENSE, BY_HALVES = "widened", "dense", "split"

REWRITES = (WIDENED, DENSE, BY_HALVES)
"""The strategies that multiply by rewritten factors."""


def rewritten_chain(structure: FactorChain, strategy: str) -> FactorChain:
    """Return the structure that a strategy multiplies by.

    WIDENED: (a, bd, cd, 1) for every factor; DENSE: one (1, rows, cols, 1) for the whole product; others: unchanged.
    """
    if strategy == WIDENED:
        return KroneckerSparse(tuple(Pattern(one.a, one.b * one.d, one.c * one.d, 1) for one in structure.patterns))
    return KroneckerSparse((Pattern(1, structure.rows, structure.cols, 1),)) if strategy == DENSE else structure


def rewritten(factors: Sequence[Array], structure: FactorChain, rewrite: str) -> tuple[Array, ...]:
    """Return the parameters of the rewritten structure, newly allocated.

    For BY_HALVES they are `SplitFactor`s.
    """
    if rewrite == DENSE:
        product = structure.dense(factors)
        return (product.reshape(1, 1, *product.shape),)
    factors = structure.canonical(factors)
    return tuple(map(split_factor if rewrite == BY_HALVES else _widened, factors, structure.patterns))


def _widened(weights: Array, pattern: Pattern) -> Array:
    a, b, c, d = pattern.sizes
    out = zeros((a, b, d, c, d), weights)
    for j in range(d):
        out[:, :, j, :, j] = weights[:, j]
    return out.reshape(a, 1, b * d, c * d)


def rewritten_bytes(structure: FactorChain, strategy: str, itemsize: int) -> int:
    """Return the bytes of the factors that a strategy rewrites, 0 if it rewrites none."""
    if strategy == BY_HALVES:
        return sum(map(split_factor_bytes, structure.patterns))
    return rewritten_chain(structure, strategy).parameters * itemsize if strategy in REWRITES else 0

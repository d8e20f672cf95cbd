"""The same matrix by patterns with larger blocks: more multiplications, simpler access to memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .blocks import apply_factors
from .pattern import Pattern

Array = Any
"""A numpy array or a torch tensor."""

WIDENED, DENSE = "widened", "dense"


def rewritten_patterns(patterns: Sequence[Pattern], rewrite: str) -> tuple[Pattern, ...]:
    """WIDENED: (a, bd, cd, 1) for every factor; DENSE: one (1, rows, cols, 1) for the whole product."""
    if rewrite == WIDENED:
        return tuple(Pattern(one.a, one.b * one.d, one.c * one.d, 1) for one in patterns)
    return (Pattern(1, patterns[0].rows, patterns[-1].cols, 1),)


def rewritten(factors: Sequence[Array], patterns: Sequence[Pattern], rewrite: str) -> tuple[Array, ...]:
    """The parameters of the rewritten patterns, in new numpy arrays or tensors."""
    if rewrite == WIDENED:
        return tuple(map(_widened, factors, patterns))
    product = apply_factors(factors[:-1], patterns[:-1], _dense(factors[-1], patterns[-1]))
    return (product.reshape(1, 1, *product.shape),)


def _widened(weights: Array, pattern: Pattern) -> Array:
    a, b, c, d = pattern.sizes
    out = _zeros((a, b, d, c, d), weights)
    for j in range(d):
        out[:, :, j, :, j] = weights[:, j]
    return out.reshape(a, 1, b * d, c * d)


def _dense(weights: Array, pattern: Pattern) -> Array:
    a, b, c, d = pattern.sizes
    out = _zeros((a, b, d, a, c, d), weights)
    for i in range(a):
        for j in range(d):
            out[i, :, j, i, :, j] = weights[i, j]
    return out.reshape(pattern.rows, pattern.cols)


def _zeros(shape: tuple[int, ...], like: Array) -> Array:
    return np.zeros(shape, like.dtype) if isinstance(like, np.ndarray) else like.new_zeros(shape)

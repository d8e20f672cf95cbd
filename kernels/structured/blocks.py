"""Products with factors through strided views of their operands: no block is copied."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array as Array
from ..arrays import Matrix as Matrix
from ..arrays import Tensor as Tensor
from .pattern import Pattern

Factors = Sequence[Array]
"""The parameters of the factors of a matrix, left-most first."""

NARROW = 8
"""Largest d for which copies within rows have a kernel of its own, with instructions that select every d-th feature."""


def as_blocks(matrix: Array, outer: int, inner: int, d: int) -> Array:
    """Return the view (outer, d, inner, n) of a matrix (outer inner d, n): a matrix (inner, n) for each block."""
    return matrix.reshape(outer, inner, d, matrix.shape[1]).swapaxes(1, 2)


def apply_factors(factors: Sequence[Array], patterns: Sequence[Pattern], x: Array) -> Array:
    """Compute K1 ... KL x for x (cols, n), one batched product per factor; without factors return x."""
    for weights, pattern in zip(reversed(factors), reversed(patterns), strict=True):
        a, _, c, d = pattern.sizes
        product = weights @ as_blocks(x, a, c, d)
        x = product.swapaxes(1, 2).reshape(pattern.rows, x.shape[1])
    return x


def apply_transposed(factors: Sequence[Array], patterns: Sequence[Pattern], x: Array) -> Array:
    """Compute (K1 ... KL)^H x for x (rows, n)."""
    adjoint = [weights.conj().swapaxes(2, 3) for weights in reversed(factors)]
    return apply_factors(adjoint, [pattern.transposed for pattern in reversed(patterns)], x)


def alternating_rows(patterns: Sequence[Pattern], first: bool, last: bool) -> tuple[int, int]:
    """Return the rows of the two buffers between which results alternate in a chain, including transposed ends."""
    sizes = [patterns[-1].cols] * first + [one.rows for one in reversed(patterns[1:])] + [patterns[0].rows] * last
    return max(sizes[::2], default=0), max(sizes[1::2], default=0)


def is_batch_first(x: Array) -> bool:
    """Return whether the features of one column of x (features, n) are contiguous, and those of one row are not."""
    step, other = x.strides if isinstance(x, np.ndarray) else x.stride()
    return bool(step < other and x.shape[0] > 1)


def empty_result(x: Array, rows: int, first: bool) -> Array:
    """Allocate a result (rows, n), batch-first or batch-last, of the kind of x (cols, n)."""
    size = (x.shape[1], rows) if first else (rows, x.shape[1])
    result = np.empty(size, x.dtype) if isinstance(x, np.ndarray) else x.new_empty(size)
    return result.T if first else result


def permuted(x: Array, axes: Sequence[int]) -> Array:
    """Return the view with permuted axes."""
    return x.transpose(axes) if isinstance(x, np.ndarray) else x.permute(*axes)


def contiguous(x: Array) -> Array:
    """Return a C-ordered array or tensor, copied if need be."""
    return np.ascontiguousarray(x) if isinstance(x, np.ndarray) else x.contiguous()

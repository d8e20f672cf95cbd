"""Causal products of rectangles, arrays or tensors: a triangular product of the square, and full rows below it.

`multiply(a, b, triangle, strategy)` is the triangular product of a (..., H, m, k) and b (..., Hb, k, n), H a multiple
of Hb: `triangular_heads` of arrays, or the operator of tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import PlanError
from ...schemes_db.symmetry import Triangle
from ..arrays import Array, module_of, zeros
from .triangular import grouped, ungrouped

Multiply = Callable[[Array, Array, Triangle, str | None], Array]


def scores(multiply: Multiply, q: Array, k: Array, strategy: str | None) -> Array:
    """Compute the lower triangle of Q K^T, see `lcma.causal_qk`; columns beyond the square are used by no row."""
    rows, cols, right = q.shape[-2], k.shape[-2], k.swapaxes(-1, -2)
    square = min(rows, cols)
    corner = multiply(q[..., :square, :], right[..., :square], Triangle("out"), strategy)
    if rows > square:
        return _joined(corner, _full(q[..., square:, :], right), -2)
    return _with_zeros(corner, cols - square, -1)


def values(multiply: Multiply, p: Array, v: Array, strategy: str | None) -> Array:
    """Compute P V for a lower triangular P, see `lcma.causal_pv`."""
    if p.shape[-1] != v.shape[-2]:
        raise PlanError(f"inner sizes differ: p has {p.shape[-1]} columns and v {v.shape[-2]} rows; slice one")
    square = min(p.shape[-2:])
    top = multiply(p[..., :square, :square], v[..., :square, :], Triangle("left"), strategy)
    return _joined(top, _full(p[..., square:, :], v), -2) if p.shape[-2] > square else top


def transposed_values(multiply: Multiply, p: Array, other: Array, strategy: str | None) -> Array:
    """Compute P^T B of a lower triangular P (..., Lq, Lk), which need not be square: its rows past Lk are full."""
    rows, cols = p.shape[-2:]
    square, turned = min(rows, cols), p.swapaxes(-1, -2)
    product = multiply(turned[..., :square, :square], other[..., :square, :], Triangle("left", True), strategy)
    if rows > square:
        return product + turned[..., square:] @ other[..., square:, :]
    return _with_zeros(product, cols - square, -2)


def with_unit_diagonal(a: Array) -> Array:
    """Return a copy with ones on the diagonal."""
    if not isinstance(a, np.ndarray):
        import torch

        return torch.diagonal_scatter(a, torch.ones_like(a.diagonal(dim1=-2, dim2=-1)), dim1=-2, dim2=-1)
    copy, size = np.array(a), min(a.shape[-2:])
    copy[..., range(size), range(size)] = 1
    return copy


def _full(a: Array, b: Array) -> Array:
    """Compute the plain product of a (..., H, m, k) and b (..., Hb, k, n), H a multiple of Hb."""
    left, right = grouped(a, b)
    if not isinstance(a, np.ndarray) and a.device.type == "cpu" and a.itemsize == 2:
        return ungrouped(left.float() @ right.float(), a, b).to(a.dtype)
    return ungrouped(left @ right, a, b)


def _joined(first: Array, second: Array, axis: int) -> Array:
    return module_of(first).concatenate((first, second), axis)


def _with_zeros(matrix: Array, count: int, axis: int) -> Array:
    """Return a matrix with so many rows or columns of zeros appended."""
    if not count:
        return matrix
    shape: Any = list(matrix.shape)
    shape[axis] = count
    return _joined(matrix, zeros(shape, matrix), axis)

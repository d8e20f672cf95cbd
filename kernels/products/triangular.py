"""Triangular and masked products; several heads of the first operand may share one of the second.

Causal products of rectangles are a triangular product of the square, and full rows below it. Their `multiply(a, b,
triangle, strategy)` is the triangular product: `triangular_heads` of arrays, or the operator of tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...arguments import need
from ...errors import PlanError
from ...schemes_db.symmetry import Triangle
from ..arrays import Array, Matrix, module_of, zeros
from ..causal.block_masks import scheme_reason
from ..codegen.certified import SchemeLike, certified
from ..plans.decisions import AUTO, executor_for
from ..plans.families import removal_of
from ..request import Request, structures_of
from ..structure import DENSE, BlockMask
from .arrays import multiply, request_for

STRATEGIES = ("vendor", "strips", "kernel")
"""Strategies without a program."""


def strategy_text(strategy: str | None, scheme: str | None) -> str | None:
    """Return the argument of `run_triangular` for a strategy and a scheme, of which either may be None.

    Raises:
        PlanError: the strategy is unknown, or takes no scheme.
    """
    need(str | None, strategy=strategy, scheme=scheme)
    if strategy is not None and strategy not in STRATEGIES:
        if reason := removal_of(strategy, "causal", "cpu"):
            raise PlanError(reason)
        raise PlanError(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}; a scheme goes to scheme=")
    if strategy is not None and scheme is not None:
        raise PlanError(f"{strategy} takes no scheme; leave strategy or scheme out")
    return strategy or scheme


def triangular_heads(a: Array, b: Array, triangle: Triangle, strategy: str | None) -> Array:
    """Compute the triangular product of a (..., H, m, k) and b (..., Hb, k, n), H a multiple of Hb: arrays or tensors.

    Tensors are of a GPU.
    """
    left, right = grouped(a, b)
    request = request_for(left, right, structures=structures_of(triangle))
    return ungrouped(run_triangular(request, left, right, strategy), a, b)


def grouped(a: Array, b: Array) -> tuple[Array, Array]:
    """Split the heads of `a` so that those of `b` broadcast, if b has fewer (GQA)."""
    if a.ndim < 3 or b.ndim < 3:
        return a, b
    many, few = a.shape[-3], b.shape[-3]
    if few in (many, 1) or many == 1:
        return a, b
    if few == 0 or many % few:
        raise PlanError(f"{many} heads can't share {few}: the first must be a multiple of the second")
    return a.reshape(*a.shape[:-3], few, many // few, *a.shape[-2:]), b[..., :, None, :, :]


def ungrouped(c: Array, a: Array, b: Array) -> Array:
    """Return the product of grouped operands with its heads merged to one dimension again."""
    grouped_heads = c.ndim > max(a.ndim, b.ndim)
    return c.reshape(*c.shape[:-4], c.shape[-4] * c.shape[-3], *c.shape[-2:]) if grouped_heads else c


def run_triangular(request: Request, a: Any, b: Any, strategy: str | None) -> Any:
    """Compute the triangular product of a request, by a strategy or scheme name, or by the planner's choice."""
    if strategy is None or strategy in STRATEGIES:
        return executor_for(request, AUTO, strategy=strategy).run(a, b)
    return executor_for(request, strategy).run(a, b)


def masked(a: Matrix, b: Matrix, kinds: npt.NDArray[np.int8], scheme: SchemeLike | None = None) -> Matrix:
    """Compute A B in the blocks that `kinds` want, zero elsewhere.

    Raises:
        PlanError: the operands do not fit each other or the mask, or the scheme is for another mask.
    """
    request = Request.of(a, b, structures=(DENSE, DENSE, BlockMask.of(kinds)))
    if scheme is None:
        product: Matrix = executor_for(request).run(a, b)
        return product
    proven = certified(scheme)
    if reason := scheme_reason(proven.target, kinds):
        raise PlanError(reason)
    return multiply(a, b, proven)


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

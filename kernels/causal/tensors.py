"""Triangular products of tensors on a GPU: lengths that differ, heads that share an operand, and batches."""

from __future__ import annotations

from typing import Any

from ...errors import PlanError
from ...schemes_db.symmetry import Triangle
from ..cuda.dtypes import name_of
from ..cuda.executor import request_of
from ..request import structures_of
from .run import run_triangular

Tensor = Any


def causal_qk(q: Tensor, k: Tensor, way: str | None = None) -> Tensor:
    """See `products.causal_qk`."""
    square = min(q.shape[-2], k.shape[-2])
    if q.shape[-2] == k.shape[-2]:
        return _batched(q, k.mT, Triangle("out"), way)
    corner = _batched(q[..., :square, :], k[..., :square, :].mT, Triangle("out"), way)
    out = corner.new_zeros((*corner.shape[:-2], q.shape[-2], k.shape[-2]))
    out[..., :square, :square] = corner
    if q.shape[-2] > square:
        out[..., square:, :] = q[..., square:, :] @ _spread(k, q).mT
    return out


def causal_pv(p: Tensor, v: Tensor, way: str | None = None) -> Tensor:
    """See `products.causal_pv`."""
    rows, cols = p.shape[-2:]
    square = min(rows, cols)
    if rows == cols:
        return _batched(p, v, Triangle("left"), way)
    top = _batched(p[..., :square, :square], v[..., :square, :], Triangle("left"), way)
    out = top.new_empty((*top.shape[:-2], rows, top.shape[-1]))
    out[..., :square, :] = top
    if rows > square:
        out[..., square:, :] = p[..., square:, :] @ _spread(v, p)
    return out


def trmm(a: Tensor, b: Tensor, triangle: Triangle, transposed: bool, unit: bool, way: str | None = None) -> Tensor:
    """See `products.trmm`; `triangle` is that of op(A)."""
    factor = a.mT if transposed else a
    if unit:
        factor = factor.clone()
        factor.diagonal(dim1=-2, dim2=-1).fill_(1)
    if triangle.side == "left":
        return _batched(factor, b, triangle, way)
    # B A = (A^T B^T)^T, which leaves the heads that share a matrix on the right.
    return _batched(factor.mT, b.mT, Triangle("left", not triangle.upper), way).mT


def syrk(a: Tensor, triangle: Triangle, transposed: bool, way: str | None = None) -> Tensor:
    """See `products.syrk`."""
    left = a.mT if transposed else a
    return _batched(left, left.mT, Triangle("out", triangle.upper, shared=True), way)


def _spread(shared: Tensor, like: Tensor) -> Tensor:
    """Keys or values repeated for the heads that share them."""
    if shared.ndim < 3 or shared.shape[-3] in (1, like.shape[-3]):
        return shared
    return shared.repeat_interleave(like.shape[-3] // shared.shape[-3], -3)


def _batched(a: Tensor, b: Tensor, triangle: Triangle, way: str | None) -> Tensor:
    """The product of all matrices of a batch; `b` may have fewer heads than `a`, each for several in a row."""
    if a.dtype != b.dtype:
        raise PlanError(f"operands are {a.dtype} and {b.dtype}; convert one with .to")
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise PlanError(f"operands of shapes {tuple(a.shape)} and {tuple(b.shape)} don't multiply")
    heads = (a.shape[-3], b.shape[-3]) if a.ndim > 2 and b.ndim > 2 else (1, 1)
    grouped = heads[0] != heads[1] and 1 not in heads
    if grouped:
        if not heads[1] or heads[0] % heads[1]:
            raise PlanError(f"{heads[0]} heads can't share {heads[1]}: the first must be a multiple of the second")
        a, b = a.unflatten(-3, (heads[1], heads[0] // heads[1])), b.unsqueeze(-3)
    request = request_of(a, b, name_of(a), structures=structures_of(triangle), shared=triangle.shared)
    product: Tensor = run_triangular(request, a, b, None, way)
    return product.flatten(-4, -3) if grouped else product

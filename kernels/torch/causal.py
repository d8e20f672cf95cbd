"""Triangular products of tensors: the public functions for torch, differentiable in every mode and compilable."""

from __future__ import annotations

import torch
from torch import Tensor

from ...errors import PlanError
from ...schemes_db.symmetry import Triangle
from ..request import need_matrices
from .processor import HALVES
from .triangular import triangular_mm


def causal_qk(q: Tensor, k: Tensor, strategy: str | None = None) -> Tensor:
    """See `lcma.causal_qk`."""
    _check(q=q, k=k)
    rows, cols = q.shape[-2], k.shape[-2]
    square = min(rows, cols)
    corner = triangular_mm(q[..., :square, :], k[..., :square, :].mT, Triangle("out"), strategy)
    if rows > square:
        return torch.cat([corner, _full(q[..., square:, :], k.mT)], -2)
    if cols > square:
        return torch.nn.functional.pad(corner, (0, cols - square))
    return corner


def causal_pv(p: Tensor, v: Tensor, strategy: str | None = None) -> Tensor:
    """See `lcma.causal_pv`."""
    _check(p=p, v=v)
    if p.shape[-1] != v.shape[-2]:
        raise PlanError(f"inner sizes differ: p has {p.shape[-1]} columns and v {v.shape[-2]} rows; slice one")
    rows, cols = p.shape[-2:]
    square = min(rows, cols)
    top = triangular_mm(p[..., :square, :square], v[..., :square, :], Triangle("left"), strategy)
    return torch.cat([top, _full(p[..., square:, :], v)], -2) if rows > square else top


def transposed_pv(p: Tensor, other: Tensor, strategy: str | None = None) -> Tensor:
    """Compute P^T B of a lower triangular P (..., Lq, Lk), which need not be square: its rows past Lk are full."""
    rows, cols = p.shape[-2:]
    square = min(rows, cols)
    product = trmm(p[..., :square, :square], other[..., :square, :], Triangle("left", True), True, False, strategy)
    if cols > square:
        return torch.nn.functional.pad(product, (0, 0, 0, cols - square))
    return product + p[..., square:, :].mT @ other[..., square:, :] if rows > square else product


def trmm(a: Tensor, b: Tensor, triangle: Triangle, transposed: bool, unit: bool, strategy: str | None = None) -> Tensor:
    """See `lcma.trmm`; `triangle` is that of op(A)."""
    _check(a=a, b=b)
    if unit:
        a = torch.diagonal_scatter(a, torch.ones_like(a.diagonal(dim1=-2, dim2=-1)), dim1=-2, dim2=-1)
    factor = a.mT if transposed else a
    operands = (factor, b) if triangle.side == "left" else (b, factor)
    return triangular_mm(*operands, triangle, strategy)


def syrk(a: Tensor, triangle: Triangle, transposed: bool, strategy: str | None = None) -> Tensor:
    """See `lcma.syrk`."""
    _check(a=a)
    left = a.mT if transposed else a
    return triangular_mm(left, left.mT, triangle, strategy)


def _full(a: Tensor, b: Tensor) -> Tensor:
    """Compute the plain product of a (..., H, m, k) and b (..., Hb, k, n), H a multiple of Hb."""
    if a.ndim > 2 and b.ndim > 2 and b.shape[-3] not in (1, a.shape[-3]):
        b = b.repeat_interleave(a.shape[-3] // b.shape[-3], -3)
    if a.device.type == "cpu" and a.dtype in HALVES:
        return (a.float() @ b.float()).to(a.dtype)
    return a @ b


def _check(**tensors: Tensor) -> None:
    """Raise PlanError unless all are matrices of one dtype on one device."""
    need_matrices(**tensors)
    first, *others = tensors.values()
    for other in others:
        if first.dtype != other.dtype:
            raise PlanError(f"operands are {first.dtype} and {other.dtype}; convert one with .to")
        if first.device != other.device:
            raise PlanError(f"operands are on {first.device} and {other.device}; move them to one processor or GPU")

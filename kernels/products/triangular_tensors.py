"""Triangular products of batches of GPU tensors; several heads of the first operand may share one of the second."""

from __future__ import annotations

from typing import Any

from ...errors import PlanError
from ...schemes_db.symmetry import Triangle
from ..cuda.dtypes import precision_of
from ..cuda.requests import request_of
from ..request import structures_of
from .triangular import run_triangular

Tensor = Any


def triangular_heads(a: Tensor, b: Tensor, triangle: Triangle, strategy: str | None) -> Tensor:
    """Compute the triangular product of a (..., H, m, k) and b (..., Hb, k, n), H a multiple of Hb."""
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
    request = request_of(a, b, precision_of(a), structures=structures_of(triangle))
    product: Tensor = run_triangular(request, a, b, None, strategy)
    return product.flatten(-4, -3) if grouped else product

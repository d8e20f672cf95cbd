"""Triangular products of tensors: the operator `lcma::triangular_mm`.

Derivatives of any order exist, in every mode, and products can be compiled.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ...errors import PlanError
from ...schemes_db.symmetry import Triangle
from ..cuda.requests import check_alike
from ..products.triangular import triangular_heads
from .bilinear import Options, define_bilinear, empty_product
from .processor import through_numpy


def triangular_mm(a: Tensor, b: Tensor, triangle: Triangle, strategy: str | None = None) -> Tensor:
    """Compute the product of a (..., H, m, k) and b (..., Hb, k, n), H a multiple of Hb, with a square triangle.

    Entries of an operand outside its triangle are ignored and have zero gradient; the result is
    zero outside a wanted triangle. The derivatives are triangular products by the same strategy
    if it supports them, else by the one predicted fastest. `triangle.shared`: b is a.mT.

    Raises:
        PlanError: the operands do not fit each other or the triangle, or `strategy` is unknown.
    """
    return _operator(a, b, triangle.side, triangle.upper, triangle.shared, strategy, True)


def _run(a: Tensor, b: Tensor, side: str, upper: bool, shared: bool, strategy: str | None, required: bool) -> Tensor:
    check_alike(a, b)
    product = PRODUCTS.get(a.device.type)
    if product is None:
        raise PlanError(f"triangular products run on cpu and cuda, not on {a.device}; move the operands with .to")
    triangle = Triangle(side, upper, shared)
    if strategy is not None and not required:
        try:
            return product(a, b, triangle, strategy)
        except PlanError:  # a strategy of another product, for example a scheme for A A^T alone
            strategy = None
    return product(a, b, triangle, strategy)


def _on_processor(a: Tensor, b: Tensor, triangle: Triangle, strategy: str | None) -> Tensor:
    return through_numpy(lambda x, y: triangular_heads(x, y, triangle, strategy), a, b)


PRODUCTS = {"cpu": _on_processor, "cuda": triangular_heads}
"""Functions of the product itself, without derivatives, by device type."""


def _batch_shape(a: Any, b: Any) -> tuple[int, ...]:
    """Return the leading sizes of a product by those of a and b, of whose heads several of `a` may share one of `b`."""
    if not a or not b:
        return tuple(torch.broadcast_shapes(a, b))
    return *torch.broadcast_shapes(a[:-1], b[:-1]), b[-1] if a[-1] == 1 else a[-1]


def _gradient(a: Tensor, b: Tensor, options: Options, grad: Tensor, of: int) -> Tensor:
    """Return the gradient of a or b.

    Of C = T(A) B: dA = T(dC B^H), dB = T(A)^H dC; of C = T(A B): dA = T(dC) B^H, dB = A^H T(dC); right likewise.
    T selects the triangle. The heads of `a` that share one of `b` remain separate, until their sum.
    """
    side, upper, _, strategy, _ = options
    if of == 0:
        place, flipped = {"left": ("out", upper), "out": ("left", upper), "right": ("right", not upper)}[side]
        return _operator(grad, b.mH, place, flipped, False, strategy, False)
    place, flipped = {"left": ("left", not upper), "out": ("right", upper), "right": ("out", upper)}[side]
    return _operator(a.mH, grad, place, flipped, False, strategy, False)


def _tangent_options(options: Options, operand: int) -> Options:
    """Drop `shared`: the tangent of one operand of A A^T is not the other's transpose."""
    side, upper, shared, strategy, required = options
    return side, upper, False, strategy, required and not shared


def _flops(a_shape: Any, b_shape: Any, side: str, *_: Any, out_shape: Any = None, **__: Any) -> int:
    """Return twice the products of entries inside the triangle: n (n + 1) per row or column of the third size."""
    m, k, n = a_shape[-2], a_shape[-1], b_shape[-1]
    size, other = {"left": (m, n), "out": (m, k), "right": (n, m)}[side]
    return math.prod(_batch_shape(a_shape[:-2], b_shape[:-2])) * size * (size + 1) * other


_operator = define_bilinear(
    "triangular_mm(Tensor a, Tensor b, str side, bool upper, bool shared, str? strategy, bool required) -> Tensor",
    _run,
    partial(empty_product, batch_of=_batch_shape),
    _gradient,
    _flops,
    tangent_options=_tangent_options,
)

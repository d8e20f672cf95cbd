"""The triangular and masked products that users call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.symmetry import Triangle
from ..request import Request
from .arrays import Array, on_device, through_numpy
from .batches import batch_shape, grouped, need_matrices, triangular, ungrouped, with_unit_diagonal

Matrix = npt.NDArray[Any]


def causal_qk(q: Array, k: Array, *, way: str | None = None) -> Array:
    """The lower triangle of Q K^T, zero above the diagonal.

    q (..., Lq, d) and k (..., Lk, d), numpy arrays or torch tensors of one dtype; the result is
    (..., Lq, Lk). The leading sizes broadcast; where q has a multiple of k's heads (the last leading
    size), each head of k serves that many of q (GQA). Where Lq and Lk differ the diagonal starts in
    the upper left corner, as in scaled_dot_product_attention. `way` as in `planned`.

    Raises:
        PlanError: the operands do not fit each other.
    """
    if on_device(q, k):
        from .cuda import causal_qk as of_gpu

        return of_gpu(q, k, way)
    return through_numpy(lambda a, b: _qk(a, b, way), q, k)


def causal_pv(p: Array, v: Array, *, way: str | None = None) -> Array:
    """P V of a lower triangular P; what stands above its diagonal is never used.

    p (..., Lq, Lk) and v (..., Lk, d); heads and lengths as in `causal_qk`.

    Raises:
        PlanError: the operands do not fit each other.
    """
    if on_device(p, v):
        from .cuda import causal_pv as of_gpu

        return of_gpu(p, v, way)
    return through_numpy(lambda a, b: _pv(a, b, way), p, v)


def trmm(
    a: Array,
    b: Array,
    side: str = "left",
    lower: bool = True,
    transposed: bool = False,
    unit: bool = False,
    *,
    way: str | None = None,
) -> Array:
    """op(A) B, or B op(A) on the right, with A triangular and op the transposition where asked.

    As in BLAS: `lower` says which triangle of A is there, before the transposition; the other one is
    never used, nor is the diagonal with `unit`, which is then taken for ones. a (..., n, n),
    b (..., n, m) or (..., m, n).

    Raises:
        PlanError: the operands do not fit each other, or `side` is neither left nor right.
    """
    if side not in ("left", "right"):
        raise PlanError(f'side must be "left" or "right", not {side!r}')
    triangle = Triangle(side, lower == transposed)
    if on_device(a, b):
        from .cuda import trmm as of_gpu

        return of_gpu(a, b, triangle, transposed, unit)

    def work(x: Matrix, y: Matrix) -> Matrix:
        need_matrices(a=x, b=y)
        factor = with_unit_diagonal(x) if unit else x
        factor = factor.swapaxes(-1, -2) if transposed else factor
        return triangular(factor, y, triangle, way) if side == "left" else triangular(y, factor, triangle, way)

    return through_numpy(work, a, b)


def syrk(a: Array, lower: bool = True, transposed: bool = False, *, way: str | None = None) -> Array:
    """One triangle of A A^T (of A^T A where `transposed`), zero outside it.

    A scheme's combinations of blocks are formed once for both sides. a (..., n, k).

    Raises:
        PlanError: a is not a matrix.
    """
    triangle = Triangle("out", not lower, shared=True)
    if on_device(a):
        from .cuda import syrk as of_gpu

        return of_gpu(a, triangle, transposed)

    def work(x: Matrix) -> Matrix:
        need_matrices(a=x)
        left = x.swapaxes(-1, -2) if transposed else x
        return triangular(left, left.swapaxes(-1, -2), triangle, way)

    return through_numpy(work, a)


def _qk(q: Matrix, k: Matrix, way: str | None) -> Matrix:
    need_matrices(q=q, k=k)
    left, right = grouped(q, k)
    right = right.swapaxes(-1, -2)
    rows, cols = q.shape[-2], k.shape[-2]
    square = min(rows, cols)
    if rows == cols:
        return ungrouped(triangular(left, right, Triangle("out"), way), q, k)
    # Rows below the square see every column; columns beyond it are seen by no row.
    request = Request.of(left, right)  # that the operands fit each other at all
    out = np.zeros((*batch_shape(left, right), rows, cols), dtype=left.dtype)
    corner = (..., slice(None, square), slice(None, square))
    out[corner] = triangular(left[..., :square, :], right[..., :square], Triangle("out"), way)
    if rows > square and math.prod(request.shape):
        np.matmul(left[..., square:, :], right, out=out[..., square:, :])
    return ungrouped(out, q, k)


def _pv(p: Matrix, v: Matrix, way: str | None) -> Matrix:
    need_matrices(p=p, v=v)
    left, right = grouped(p, v)
    rows, cols = p.shape[-2:]
    square = min(rows, cols)
    if rows == cols:
        return ungrouped(triangular(left, right, Triangle("left"), way), p, v)
    Request.of(left, right)
    out = np.empty((*batch_shape(left, right), rows, right.shape[-1]), dtype=left.dtype)
    out[..., :square, :] = triangular(left[..., :square, :square], right[..., :square, :], Triangle("left"), way)
    np.matmul(left[..., square:, :], right, out=out[..., square:, :])
    return ungrouped(out, p, v)

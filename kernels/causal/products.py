"""The triangular and masked products that users call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.symmetry import Triangle
from ..request import Request, structures_of
from .arrays import Array, on_device, through_numpy
from .run import run_triangular

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
        from .tensors import causal_qk as of_gpu

        return of_gpu(q, k, way)
    return through_numpy(lambda a, b: _qk(a, b, way), q, k)


def causal_pv(p: Array, v: Array, *, way: str | None = None) -> Array:
    """P V of a lower triangular P; what stands above its diagonal is never used.

    p (..., Lq, Lk) and v (..., Lk, d); heads and lengths as in `causal_qk`.

    Raises:
        PlanError: the operands do not fit each other.
    """
    if on_device(p, v):
        from .tensors import causal_pv as of_gpu

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
        from .tensors import trmm as of_gpu

        return of_gpu(a, b, triangle, transposed, unit, way)

    def work(x: Matrix, y: Matrix) -> Matrix:
        _need_matrices(a=x, b=y)
        factor = _with_unit_diagonal(x) if unit else x
        factor = factor.swapaxes(-1, -2) if transposed else factor
        return _triangular(factor, y, triangle, way) if side == "left" else _triangular(y, factor, triangle, way)

    return through_numpy(work, a, b)


def syrk(a: Array, lower: bool = True, transposed: bool = False, *, way: str | None = None) -> Array:
    """One triangle of A A^T (of A^T A where `transposed`), zero outside it.

    A scheme's combinations of blocks are formed once for both sides. a (..., n, k).

    Raises:
        PlanError: a is not a matrix.
    """
    triangle = Triangle("out", not lower, shared=True)
    if on_device(a):
        from .tensors import syrk as of_gpu

        return of_gpu(a, triangle, transposed, way)

    def work(x: Matrix) -> Matrix:
        _need_matrices(a=x)
        left = x.swapaxes(-1, -2) if transposed else x
        return _triangular(left, left.swapaxes(-1, -2), triangle, way)

    return through_numpy(work, a)


def _need_matrices(**arrays: Matrix) -> None:
    for name, array in arrays.items():
        if array.ndim < 2:
            raise PlanError(f"{name} has {array.ndim} dimensions; reshape it to a matrix (at least 2)")


def _with_unit_diagonal(a: Matrix) -> Matrix:
    copy = np.array(a)
    size = min(copy.shape[-2:])
    copy[..., range(size), range(size)] = 1
    return copy


def _triangular(a: Matrix, b: Matrix, triangle: Triangle, way: str | None, out: Matrix | None = None) -> Matrix:
    """The triangular product of (broadcast) matrices."""
    request = Request.of(a, b, out, structures=structures_of(triangle), shared=triangle.shared)
    return run_triangular(request, a, b, out, way)


def _grouped(a: Matrix, b: Matrix) -> tuple[Matrix, Matrix]:
    """The operands with the heads of `a` split so that those of `b` broadcast, where b has fewer (GQA)."""
    if a.ndim < 3 or b.ndim < 3:
        return a, b
    many, few = a.shape[-3], b.shape[-3]
    if few in (many, 1) or many == 1:
        return a, b
    if few == 0 or many % few:
        raise PlanError(f"{many} heads can't share {few}: the first must be a multiple of the second")
    return a.reshape(*a.shape[:-3], few, many // few, *a.shape[-2:]), b[..., :, None, :, :]


def _ungrouped(c: Matrix, a: Matrix, b: Matrix) -> Matrix:
    """The product of grouped operands with its heads in one row again."""
    grouped = c.ndim > max(a.ndim, b.ndim)
    return c.reshape(*c.shape[:-4], c.shape[-4] * c.shape[-3], *c.shape[-2:]) if grouped else c


def _batch(a: Matrix, b: Matrix) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise PlanError(f"leading sizes {a.shape[:-2]} and {b.shape[:-2]} do not broadcast; reshape one") from None


def _qk(q: Matrix, k: Matrix, way: str | None) -> Matrix:
    _need_matrices(q=q, k=k)
    left, right = _grouped(q, k)
    right = right.swapaxes(-1, -2)
    rows, cols = q.shape[-2], k.shape[-2]
    square = min(rows, cols)
    if rows == cols:
        return _ungrouped(_triangular(left, right, Triangle("out"), way), q, k)
    # Rows below the square see every column; columns beyond it are seen by no row.
    request = Request.of(left, right)  # that the operands fit each other at all
    out = np.zeros((*_batch(left, right), rows, cols), dtype=left.dtype)
    corner = (..., slice(None, square), slice(None, square))
    out[corner] = _triangular(left[..., :square, :], right[..., :square], Triangle("out"), way)
    if rows > square and math.prod(request.shape):
        np.matmul(left[..., square:, :], right, out=out[..., square:, :])
    return _ungrouped(out, q, k)


def _pv(p: Matrix, v: Matrix, way: str | None) -> Matrix:
    _need_matrices(p=p, v=v)
    left, right = _grouped(p, v)
    rows, cols = p.shape[-2:]
    square = min(rows, cols)
    if rows == cols:
        return _ungrouped(_triangular(left, right, Triangle("left"), way), p, v)
    Request.of(left, right)
    out = np.empty((*_batch(left, right), rows, right.shape[-1]), dtype=left.dtype)
    out[..., :square, :] = _triangular(left[..., :square, :square], right[..., :square, :], Triangle("left"), way)
    np.matmul(left[..., square:, :], right, out=out[..., square:, :])
    return _ungrouped(out, p, v)

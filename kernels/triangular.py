"""The triangular and masked products that users call."""

from __future__ import annotations

import math

import numpy as np

from ..arguments import need
from ..errors import PlanError
from ..schemes_db.masks import refuse_masks
from ..schemes_db.operands import array_of
from ..schemes_db.symmetry import Triangle
from .arrays import Matrix
from .operand_kinds import Array, all_tensors
from .products.triangular import (
    grouped,
    strategy_text,
    triangular,
    ungrouped,
    with_unit_diagonal,
)
from .request import Request, need_matrices


def causal_qk(q: Array, k: Array, *, strategy: str | None = None, scheme: str | None = None) -> Array:
    """Compute the lower triangle of Q K^T, zero above the diagonal.

    q (..., Lq, d) and k (..., Lk, d), numpy arrays or torch tensors of one dtype; the result is
    (..., Lq, Lk). The leading sizes broadcast; if q has a multiple of k's heads (the last leading
    size), each head of k is shared by that many of q (GQA). If Lq and Lk differ the diagonal starts in
    the upper left corner, as in scaled_dot_product_attention.

    `strategy` is "strips" (one GEMM per strip of rows) or "kernel" (on a GPU); `scheme` is the name of a
    scheme for triangular products. Without either the fastest is selected, as measured or predicted.

    Raises:
        PlanError: the operands do not fit each other.
    """
    text = strategy_text(strategy, scheme)
    refuse_masks(q=q, k=k)
    if all_tensors(q, k):
        from .torch.triangular import causal_qk as of_tensors

        return of_tensors(q, k, text)
    return _qk(array_of("q", q), array_of("k", k), text)


def causal_pv(p: Array, v: Array, *, strategy: str | None = None, scheme: str | None = None) -> Array:
    """Compute P V for a lower triangular P; elements above its diagonal are ignored.

    p (..., Lq, Lk) and v (..., Lk, d); heads and lengths as in `causal_qk`.

    Raises:
        PlanError: the operands do not fit each other.
    """
    text = strategy_text(strategy, scheme)
    refuse_masks(p=p, v=v)
    if all_tensors(p, v):
        from .torch.triangular import causal_pv as of_tensors

        return of_tensors(p, v, text)
    return _pv(array_of("p", p), array_of("v", v), text)


def trmm(
    a: Array,
    b: Array,
    side: str = "left",
    lower: bool = True,
    transposed: bool = False,
    unit: bool = False,
    *,
    strategy: str | None = None,
    scheme: str | None = None,
) -> Array:
    """Compute op(A) B, or B op(A) on the right, with A triangular and op the transposition if `transposed`.

    As in BLAS: `lower` selects the stored triangle of A, before the transposition; the other one is
    ignored, and so is the diagonal with `unit`, which is then assumed to be ones. a (..., n, n),
    b (..., n, m) or (..., m, n).

    Raises:
        PlanError: the operands do not fit each other, or `side` is neither left nor right.
    """
    need(str, side=side)
    need(bool, lower=lower, transposed=transposed, unit=unit)
    if side not in ("left", "right"):
        raise PlanError(f'side must be "left" or "right", not {side!r}')
    triangle = Triangle(side, lower == transposed)
    text = strategy_text(strategy, scheme)
    refuse_masks(a=a, b=b)
    if all_tensors(a, b):
        from .torch.triangular import trmm as of_tensors

        return of_tensors(a, b, triangle, transposed, unit, text)
    a, b = array_of("a", a), array_of("b", b)
    need_matrices(a=a, b=b)
    factor = with_unit_diagonal(a) if unit else a
    factor = factor.swapaxes(-1, -2) if transposed else factor
    return triangular(factor, b, triangle, text) if side == "left" else triangular(b, factor, triangle, text)


def syrk(
    a: Array, lower: bool = True, transposed: bool = False, *, strategy: str | None = None, scheme: str | None = None
) -> Array:
    """Compute one triangle of A A^T (of A^T A if `transposed`), zero outside it.

    A scheme's combinations of blocks are computed once for both operands. a (..., n, k).

    Raises:
        PlanError: a is not a matrix.
    """
    need(bool, lower=lower, transposed=transposed)
    triangle = Triangle("out", not lower, shared=True)
    text = strategy_text(strategy, scheme)
    refuse_masks(a=a)
    if all_tensors(a):
        from .torch.triangular import syrk as of_tensors

        return of_tensors(a, triangle, transposed, text)
    a = array_of("a", a)
    need_matrices(a=a)
    left = a.swapaxes(-1, -2) if transposed else a
    return triangular(left, left.swapaxes(-1, -2), triangle, text)


def _qk(q: Matrix, k: Matrix, strategy: str | None) -> Matrix:
    need_matrices(q=q, k=k)
    left, right = grouped(q, k)
    right = right.swapaxes(-1, -2)
    rows, cols = q.shape[-2], k.shape[-2]
    square = min(rows, cols)
    if rows == cols:
        return ungrouped(triangular(left, right, Triangle("out"), strategy), q, k)
    # Rows below the square use every column; columns beyond it are used by no row.
    request = Request.of(left, right)  # checks that the operands fit each other
    out = np.zeros((*request.batch, rows, cols), dtype=left.dtype)
    corner = (..., slice(None, square), slice(None, square))
    out[corner] = triangular(left[..., :square, :], right[..., :square], Triangle("out"), strategy)
    if rows > square and math.prod(request.shape):
        np.matmul(left[..., square:, :], right, out=out[..., square:, :])
    return ungrouped(out, q, k)


def _pv(p: Matrix, v: Matrix, strategy: str | None) -> Matrix:
    need_matrices(p=p, v=v)
    left, right = grouped(p, v)
    rows, cols = p.shape[-2:]
    square = min(rows, cols)
    if rows == cols:
        return ungrouped(triangular(left, right, Triangle("left"), strategy), p, v)
    out = np.empty((*Request.of(left, right).batch, rows, right.shape[-1]), dtype=left.dtype)
    out[..., :square, :] = triangular(left[..., :square, :square], right[..., :square, :], Triangle("left"), strategy)
    np.matmul(left[..., square:, :], right, out=out[..., square:, :])
    return ungrouped(out, p, v)

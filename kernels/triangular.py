"""The triangular and masked products that users call."""

from __future__ import annotations

from typing import Any

from ..arguments import need
from ..errors import PlanError
from ..schemes_db.masks import refuse_masks
from ..schemes_db.operands import array_of
from ..schemes_db.symmetry import Triangle
from .arrays import Array, all_tensors
from .causal.block_masks import Mask, kinds_of
from .codegen.certified import SchemeLike
from .products.triangular import masked, scores, strategy_text, triangular_heads, values, with_unit_diagonal
from .request import need_matrices


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
    multiply, text, q, k = _called(strategy, scheme, q=q, k=k)
    return scores(multiply, q, k, text)


def causal_pv(p: Array, v: Array, *, strategy: str | None = None, scheme: str | None = None) -> Array:
    """Compute P V for a lower triangular P; elements above its diagonal are ignored.

    p (..., Lq, Lk) and v (..., Lk, d); heads and lengths as in `causal_qk`.

    Raises:
        PlanError: the operands do not fit each other.
    """
    multiply, text, p, v = _called(strategy, scheme, p=p, v=v)
    return values(multiply, p, v, text)


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
    multiply, text, a, b = _called(strategy, scheme, a=a, b=b)
    factor = with_unit_diagonal(a) if unit else a
    factor = factor.swapaxes(-1, -2) if transposed else factor
    return multiply(factor, b, triangle, text) if side == "left" else multiply(b, factor, triangle, text)


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
    multiply, text, a = _called(strategy, scheme, a=a)
    left = a.swapaxes(-1, -2) if transposed else a
    return multiply(left, left.swapaxes(-1, -2), triangle, text)


def masked_matmul(a: Array, b: Array, mask: Mask, *, scheme: SchemeLike | None = None) -> Array:
    """Compute A B at the elements that the mask wants, zero elsewhere.

    a (..., M, K), b (..., K, N), numpy arrays or torch tensors. `mask` is a boolean array (p, q) of
    blocks, ceil(M / p) high and ceil(N / q) wide, so that (M, N) is an element mask; or p strings of
    q letters: F or 1 full, L lower triangle, U upper triangle, 0 or . absent. Rows without wanted
    elements are zero. `scheme`: one for this mask. Without, each run of wanted blocks in a row of blocks is one
    GEMM.

    Raises:
        PlanError: the operands do not fit each other or the mask, or the scheme is for another mask.
    """
    refuse_masks(a=a, b=b, mask=mask)
    if all_tensors(a, b):
        from .torch.masked import masked_matmul as of_tensors

        return of_tensors(a, b, mask, scheme)
    return masked(array_of("a", a), array_of("b", b), kinds_of(mask), scheme)


def _called(strategy: str | None, scheme: str | None, **given: Array) -> Any:
    """Return the triangular product of arrays or that of tensors, its last argument, and the operands, all matrices."""
    text = strategy_text(strategy, scheme)
    refuse_masks(**given)
    if not all_tensors(*given.values()):
        arrays = {name: array_of(name, one) for name, one in given.items()}
        need_matrices(**arrays)
        return triangular_heads, text, *arrays.values()
    from .cuda.requests import check_alike
    from .torch.triangular import triangular_mm

    need_matrices(**given)
    check_alike(*given.values())
    return triangular_mm, text, *given.values()

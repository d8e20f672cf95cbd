"""The product A B at the elements that a mask wants, zero elsewhere."""

from __future__ import annotations

from ..schemes_db.masks import refuse_masks
from ..schemes_db.operands import array_of
from .causal.block_masks import Mask, kinds_of
from .codegen.certified import SchemeLike
from .operand_kinds import Array, all_tensors
from .products.triangular import masked


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

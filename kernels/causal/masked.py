"""A B where a mask wants it, zero elsewhere."""

from __future__ import annotations

import numpy as np

from ..codegen.certified import SchemeLike
from .arrays import Array, all_tensors
from .block_masks import Mask, kinds_of
from .run import masked


def masked_matmul(a: Array, b: Array, mask: Mask, *, scheme: SchemeLike | None = None) -> Array:
    """A B where the mask wants it, zero elsewhere.

    a (..., M, K), b (..., K, N), numpy arrays or torch tensors. `mask` is a boolean array (p, q) of
    blocks, ceil(M / p) high and ceil(N / q) wide, so that (M, N) is a mask of elements; or p texts of
    q letters: F or 1 full, L lower triangle, U upper triangle, 0 or . absent. Rows without anything
    wanted are zero. `scheme`: one for this mask. Without, what is wanted of a row of blocks is one
    GEMM a run; on a processor a scheme of the catalogue is used where it saves a tenth of the
    products of large blocks.

    Raises:
        PlanError: the operands do not fit each other or the mask, or the scheme is for another mask.
    """
    if all_tensors(a, b):
        from ..torch.masked import masked_matmul as of_tensors

        return of_tensors(a, b, mask, scheme)
    return masked(np.asarray(a), np.asarray(b), kinds_of(mask), scheme)

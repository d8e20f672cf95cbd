"""The same matrix by patterns with larger blocks or in torch's sparse formats, computed once before products."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..cpu.blas import as_tensor
from ..prepared_operand import PreparedOperand
from .baselines import BSR, CSR, SPARSE
from .blocks import apply_factors
from .naive import dense_factor, zeros
from .pattern import Pattern

Array = Any
"""A numpy array or a torch tensor."""

WIDENED, DENSE = "widened", "dense"

REWRITES = (WIDENED, DENSE, BSR, CSR)
"""The strategies that multiply by rewritten factors."""


def prepared_factors(factors: Sequence[Array], patterns: Sequence[Pattern], rewrite: str | None) -> PreparedOperand:
    """The factors as a strategy multiplies by them, to be given to its executor in their place."""
    if rewrite is None:
        return PreparedOperand(factors, tuple(factors), 0)
    nbytes = rewritten_bytes(rewrite, patterns, factors[0].itemsize)
    return PreparedOperand(factors, rewritten(factors, patterns, rewrite), nbytes)


def rewritten_patterns(patterns: Sequence[Pattern], rewrite: str) -> tuple[Pattern, ...]:
    """WIDENED: (a, bd, cd, 1) for every factor; DENSE: one (1, rows, cols, 1) for the whole product; BSR
    and CSR: the patterns as they are."""
    if rewrite in SPARSE:
        return tuple(patterns)
    if rewrite == WIDENED:
        return tuple(Pattern(one.a, one.b * one.d, one.c * one.d, 1) for one in patterns)
    return (Pattern(1, patterns[0].rows, patterns[-1].cols, 1),)


def rewritten(factors: Sequence[Array], patterns: Sequence[Pattern], rewrite: str) -> tuple[Array, ...]:
    """The parameters of the rewritten patterns, in new arrays or tensors; of BSR and CSR sparse matrices of torch."""
    if rewrite in SPARSE:
        return tuple(map(_compressed if rewrite == CSR else _block_compressed, factors, patterns))
    if rewrite == WIDENED:
        return tuple(map(_widened, factors, patterns))
    product = apply_factors(factors[:-1], patterns[:-1], dense_factor(factors[-1], patterns[-1]))
    return (product.reshape(1, 1, *product.shape),)


def _widened(weights: Array, pattern: Pattern) -> Array:
    a, b, c, d = pattern.sizes
    out = zeros((a, b, d, c, d), weights)
    for j in range(d):
        out[:, :, j, :, j] = weights[:, j]
    return out.reshape(a, 1, b * d, c * d)


def _compressed(weights: Array, pattern: Pattern) -> Array:
    """K in torch's compressed sparse rows."""
    import torch

    weights = as_tensor(weights, str(weights.dtype)) if isinstance(weights, np.ndarray) else weights
    a, b, c, d = pattern.sizes
    i, j, q = (torch.arange(size, device=weights.device) for size in (a, d, c))
    cols = (i[:, None, None] * c + q) * d + j[None, :, None]  # (a, d, c), the same for every p
    cols = cols[:, None].expand(a, b, d, c).reshape(-1)
    starts = torch.arange(0, pattern.nonzeros + 1, c, device=weights.device)
    values = weights.swapaxes(1, 2).reshape(-1)
    shape = pattern.rows, pattern.cols
    with warnings.catch_warnings():  # that torch's sparse formats are in beta state
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(starts, cols, values, shape, check_invariants=False)


def block_side(pattern: Pattern) -> int:
    """The side of the blocks that a factor is compressed by: torch's block-sparse products take square ones."""
    return math.gcd(pattern.b, pattern.c)


def _block_compressed(weights: Array, pattern: Pattern) -> Array:
    """The block diagonal matrix of all blocks (i, j) in torch's compressed block rows."""
    import torch

    weights = as_tensor(weights, str(weights.dtype)) if isinstance(weights, np.ndarray) else weights
    a, b, c, d = pattern.sizes
    side, blocks = block_side(pattern), a * d
    high, wide = b // side, c // side
    k, q = (torch.arange(size, device=weights.device) for size in (blocks, wide))
    cols = (k[:, None, None] * wide + q).expand(blocks, high, wide).reshape(-1)
    starts = torch.arange(0, blocks * high * wide + 1, wide, device=weights.device)
    values = weights.reshape(blocks, high, side, wide, side).swapaxes(2, 3).reshape(-1, side, side).contiguous()
    shape = pattern.rows, pattern.cols
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.sparse_bsr_tensor(starts, cols, values, shape, check_invariants=False)


def rewritten_bytes(rewrite: str, patterns: Sequence[Pattern], itemsize: int) -> int:
    """Bytes of the rewritten factors; torch's sparse indices take 8 bytes each."""
    if rewrite in SPARSE:
        sides = [block_side(one) if rewrite == BSR else 1 for one in patterns]
        return sum(
            one.nonzeros * itemsize + 8 * (one.nonzeros // side**2 + one.rows // side + 1)
            for one, side in zip(patterns, sides, strict=True)
        )
    return sum(one.nonzeros for one in rewritten_patterns(patterns, rewrite)) * itemsize

"""Rewritten factors of the same matrix: larger blocks, halves of float16, or torch's sparse formats, computed once."""

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
from .split import split_factor, split_factor_bytes

Array = Any
"""A numpy array or a torch tensor."""

WIDENED, DENSE, BY_HALVES = "widened", "dense", "split"

REWRITES = (WIDENED, DENSE, BY_HALVES, BSR, CSR)
"""The strategies that multiply by rewritten factors."""


def prepared_factors(factors: Sequence[Array], patterns: Sequence[Pattern], rewrite: str | None) -> PreparedOperand:
    """Return the factors in a strategy's format, to pass to its executor."""
    if rewrite is None:
        return PreparedOperand(factors, tuple(factors), 0)
    nbytes = rewritten_bytes(rewrite, patterns, factors[0].itemsize)
    return PreparedOperand(factors, rewritten(factors, patterns, rewrite), nbytes)


def rewritten_patterns(patterns: Sequence[Pattern], rewrite: str) -> tuple[Pattern, ...]:
    """Return the rewritten patterns.

    WIDENED: (a, bd, cd, 1) for every factor; DENSE: one (1, rows, cols, 1) for the whole product; BY_HALVES, BSR
    and CSR: unchanged.
    """
    if rewrite in (BY_HALVES, *SPARSE):
        return tuple(patterns)
    if rewrite == WIDENED:
        return tuple(Pattern(one.a, one.b * one.d, one.c * one.d, 1) for one in patterns)
    return (Pattern(1, patterns[0].rows, patterns[-1].cols, 1),)


def rewritten(factors: Sequence[Array], patterns: Sequence[Pattern], rewrite: str) -> tuple[Array, ...]:
    """Return the parameters of the rewritten patterns, newly allocated.

    For BSR and CSR they are sparse torch matrices, for BY_HALVES `SplitFactor`s.
    """
    if rewrite == BY_HALVES:
        return tuple(map(split_factor, factors, patterns))
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
    """Return K in torch's compressed sparse rows."""
    import torch

    weights = as_tensor(weights, str(weights.dtype)) if isinstance(weights, np.ndarray) else weights
    a, b, c, d = pattern.sizes
    i, j, q = (torch.arange(size, device=weights.device) for size in (a, d, c))
    cols = (i[:, None, None] * c + q) * d + j[None, :, None]  # (a, d, c), the same for every p
    cols = cols[:, None].expand(a, b, d, c).reshape(-1)
    starts = torch.arange(0, pattern.nonzeros + 1, c, device=weights.device)
    values = weights.swapaxes(1, 2).reshape(-1)
    shape = pattern.rows, pattern.cols
    with warnings.catch_warnings():  # ignores the warning that torch's sparse formats are in beta state
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(starts, cols, values, shape, check_invariants=False)


def block_side(pattern: Pattern) -> int:
    """Return the side of the blocks of a compressed factor: torch's block-sparse products support square ones."""
    return math.gcd(pattern.b, pattern.c)


def _block_compressed(weights: Array, pattern: Pattern) -> Array:
    """Return the block diagonal matrix of all blocks (i, j) in torch's compressed block rows."""
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
    """Return the bytes of the rewritten factors; torch's sparse indices have 8 bytes each."""
    if rewrite == BY_HALVES:
        return sum(map(split_factor_bytes, patterns))
    if rewrite in SPARSE:
        sides = [block_side(one) if rewrite == BSR else 1 for one in patterns]
        return sum(
            one.nonzeros * itemsize + 8 * (one.nonzeros // side**2 + one.rows // side + 1)
            for one, side in zip(patterns, sides, strict=True)
        )
    return sum(one.nonzeros for one in rewritten_patterns(patterns, rewrite)) * itemsize

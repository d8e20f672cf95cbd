"""Truncated SVDs of the blocks that two chainable factors can represent, of arrays and of tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import module_of, zeros
from ..cpu.threads import parallel_tasks, single_threaded_blas, thread_count
from ..ranges import ranges
from .blocks import Array, contiguous, permuted
from .pattern import Pattern, chain_rank

SVDS_AT_ONCE = 256
"""Number of blocks whose SVDs are computed by one call."""


def rank_blocks(weights: Array, left: Pattern, right: Pattern) -> tuple[Array, int]:
    """Return the blocks (count, b1, c2) of a matrix of a product's pattern, and their rank in a product.

    weights (a1, d2, b1 d1 / d2, a2 c2 / a1). There is a block for each block row of the right factor and each diagonal
    place of the left one.
    """
    rank = chain_rank(left, right)
    assert rank is not None  # the list was checked before
    shape = left.a, right.d, left.b, left.d // right.d, right.a // left.a, right.c
    return permuted(weights.reshape(shape), (0, 4, 3, 1, 2, 5)).reshape(-1, left.b, right.c), rank


def factors_of_blocks(u: Array, v: Array, left: Pattern, right: Pattern) -> tuple[Array, Array]:
    """Return the parameters (a, d, b, c) of two factors whose product has the `rank_blocks` u v."""
    outer = left.a, right.a // left.a, left.d // right.d, right.d
    first = permuted(u.reshape(*outer, *u.shape[1:]), (0, 2, 3, 4, 1, 5)).reshape(left.parameter_shape)
    second = permuted(v.reshape(*outer, *v.shape[1:]), (0, 1, 3, 4, 2, 5)).reshape(right.parameter_shape)
    return contiguous(first), contiguous(second)


def truncated(blocks: Array, rank: int, shared: bool) -> tuple[Array, Array, float]:
    """Return U (count, m, rank) and V (count, rank, n) of the truncated SVDs, and the squared norm of blocks - U V.

    Both factors share the singular values by their roots, or V has them and U has orthonormal columns.
    """
    if _is_on_gpu(blocks):
        return truncated_by_gram(blocks, rank)
    count, m, n = blocks.shape
    kept = min(rank, m, n)
    u, v = zeros((count, m, rank), blocks), zeros((count, rank, n), blocks)

    def one(some: slice) -> float:
        first, values, second = module_of(blocks).linalg.svd(blocks[some], full_matrices=False)
        largest = values[:, :kept] ** (0.5 if shared else 1.0)
        u[some, :, :kept] = first[:, :, :kept] * (largest[:, None] if shared else 1.0)
        v[some, :kept] = largest[:, :, None] * second[:, :kept]
        return _squares(values[:, kept:])

    dropped = _sum_over_pieces(one, blocks)
    return u, v, dropped


def dropped_squares(blocks: Array, rank: int) -> float:
    """Return the squared norm of the rest of `truncated`, without the factors."""
    if _is_on_gpu(blocks):
        return float(gram_values(blocks)[..., : -rank or None].sum())

    def one(some: slice) -> float:
        if isinstance(blocks, np.ndarray):
            return _squares(np.linalg.svd(blocks[some], compute_uv=False)[:, rank:])
        return _squares(module_of(blocks).linalg.svdvals(blocks[some])[:, rank:])

    return _sum_over_pieces(one, blocks)


def gram_values(matrix: Array) -> Array:
    """Return the squared singular values (..., k), ascending, of tensors (..., m, n) from Gram matrices in float64."""
    import torch

    wide = (matrix.mT if matrix.shape[-2] < matrix.shape[-1] else matrix).double()
    return torch.linalg.eigvalsh(wide.mT @ wide).clamp_min(0.0)


def truncated_by_gram(matrix: Array, rank: int) -> tuple[Array, Array, float]:
    """Return `truncated` with shared singular values of a tensor (..., m, n), by eigenvectors of a Gram matrix.

    On a GPU many times as fast as an SVD. The Gram matrix of the smaller side is computed in float64, so that the
    error of U V is the least one to about 1e-8 of the largest singular value; U is a product by the matrix itself.
    """
    import torch

    if matrix.shape[-2] < matrix.shape[-1]:
        left, right, dropped = truncated_by_gram(matrix.mT, rank)
        return contiguous(right.mT), contiguous(left.mT), dropped
    wide = matrix.double()
    values, vectors = torch.linalg.eigh(wide.mT @ wide)  # ascending
    values = values.clamp_min(0.0)
    root = values[..., -rank:] ** 0.25  # of singular values
    right = vectors[..., -rank:]
    scale = torch.where(root > 0, 1 / root, 0.0)
    left = (wide @ right) * scale[..., None, :]
    right = contiguous((root[..., None, :] * right).mT)
    return left.to(matrix.dtype), right.to(matrix.dtype), float(values[..., :-rank].sum())


def _is_on_gpu(blocks: Array) -> bool:
    return not isinstance(blocks, np.ndarray) and bool(blocks.is_cuda)


def _squares(values: Array) -> float:
    wide = values.astype(np.float64) if isinstance(values, np.ndarray) else values.double()
    return float((wide * wide).sum())


def _sum_over_pieces(one: Callable[[slice], float], blocks: Array) -> float:
    """Return the sum, in a fixed order, of `one` over slices of many arrays, each by one thread, or of all tensors."""
    pieces = list(ranges(len(blocks), -(-len(blocks) // SVDS_AT_ONCE)))
    if len(pieces) < 2 or not isinstance(blocks, np.ndarray):
        return one(slice(None))
    found = [0.0] * len(pieces)

    def task(place: int, _: int) -> None:
        found[place] = one(slice(*pieces[place]))

    with single_threaded_blas():
        parallel_tasks(task, len(pieces), thread_count())
    return sum(found)

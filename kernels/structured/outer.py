"""The gradient of a factor's parameters: sums over the batch of outer products, block by block; both gradients too."""

from __future__ import annotations

import numpy as np

from ..measured import measured
from ..request import Layout, layout_of
from .blocks import Matrix, Tensor, as_blocks, is_batch_first
from .pattern import Pattern
from .tiles import is_readable, multiply_blocks
from .transposition import batch_first, batch_last, gathered_blocks

SLAB = 1024
"""Columns of the batch that are summed by one GEMM; the sums of all slabs are added in order."""

PRICES = measured("structured.outer")

LEAST_PART = 512
"""Minimum columns of a part of the batch."""


def outer_blocks(grad: Matrix, x: Matrix, a: int, d: int) -> Matrix:
    """Return dW (a, d, b, c) with dW[i, j] = grad[i, :, j] x[i, :, j]^T, for grad (a b d, n) and x (a c d, n).

    Sums over n are computed by slabs in a fixed order, in the dtype of the operands.
    """
    b, c = len(grad) // (a * d), len(x) // (a * d)
    total = np.zeros((a, d, b, c), np.result_type(grad, x))
    for start in range(0, grad.shape[1], SLAB):
        left, right = (_readable(y[:, start : start + SLAB], d) for y in (grad, x))
        total += as_blocks(left, a, b, d) @ as_blocks(right, a, c, d).swapaxes(2, 3)
    return total


def _readable(matrix: Matrix, d: int) -> Matrix:
    """Return the slab so that a GEMM can read its blocks: a copy unless rows are contiguous, or columns with d = 1."""
    found = layout_of(matrix)
    return matrix if found is Layout.ROWS or (found is Layout.COLUMNS and d == 1) else np.ascontiguousarray(matrix)


def outer_tensors(grad: Tensor, x: Tensor, a: int, d: int) -> Tensor:
    """Compute `outer_blocks` of GPU tensors by batched GEMMs on views; operands that these cannot read are copied.

    Sums over the batch have a fixed order; those of half precision are computed in float32.
    """
    import torch

    c = x.shape[0] // (a * d)
    pattern = Pattern(a, grad.shape[0] // (a * d), c, d)
    if is_readable(grad, d) and is_readable(x, d):
        divided = d == 1 or grad.stride(1) == x.stride(1) == 1
        parts = batch_parts(pattern, grad.shape[1], grad.itemsize) if divided else 1
        if parts > 1:
            return _outer_parts(grad, x, pattern, parts)
        total = grad.new_empty(pattern.parameter_shape)
        multiply_blocks(as_blocks(grad, *pattern.sizes[:2], d), as_blocks(x, a, c, d).mT, total)
        return total
    if is_batch_first(grad) and is_batch_first(x) and is_gathered(pattern, x.shape[1], x.itemsize):
        left, right = gathered_blocks(grad, pattern.b, d), gathered_blocks(x, c, d)
        return torch.bmm(left, right.mT).view(pattern.parameter_shape)
    return outer_tensors(batch_last(grad), batch_last(x), a, d)


def is_gathered(pattern: Pattern, n: int, item: int) -> bool:
    """Return whether the blocks of two batch-first operands are gathered for one batched GEMM of all of them.

    Else the rows of the transposed operands keep their order, so that the batch can be divided into parts.
    """
    if pattern.d == 1:
        return False
    return _gathered_seconds(pattern, n, item) <= PRICES.views * _views_seconds(
        pattern, n, item, batch_parts(pattern, n, item)
    )


def batch_parts(pattern: Pattern, n: int, item: int = 4) -> int:
    """Return the number of equal parts that the batch is divided into for sums by batched GEMMs; 1: undivided.

    A division fills a GPU that the blocks of one i or one j leave idle, at the cost of a call for every i and of the
    sums of all parts. It depends on the sizes only.
    """
    if min(*pattern.sizes, n) == 0 or _filled(pattern, 1) >= 1:
        return 1
    known = (parts for parts in range(1, n // LEAST_PART + 1) if n % parts == 0)
    return min(known, key=lambda parts: _views_seconds(pattern, n, item, parts), default=1)


def _filled(pattern: Pattern, parts: int) -> float:
    """Return the tiles of one call relative to those that run at once, two per multiprocessor."""
    a, b, c, d = pattern.sizes
    return (a if parts == 1 and d <= a else d * parts) * -(-b // 128) * -(-c // 128) / (2 * PRICES.processors)


def _views_seconds(pattern: Pattern, n: int, item: int, parts: int) -> float:
    """Return the seconds of the sums by GEMMs on views, with so many parts of the batch."""
    summed = 2 * (parts > 1) * parts * pattern.nonzeros * item / PRICES.moved
    calls = pattern.d if parts == 1 and pattern.d <= pattern.a else pattern.a
    busy = 2.0 * n * pattern.nonzeros / PRICES.rates.get(item, PRICES.rates[4])
    return busy * max(1.0, 1 / _filled(pattern, parts)) + calls * PRICES.call + summed


def _gathered_seconds(pattern: Pattern, n: int, item: int) -> float:
    """Return the seconds of one batched GEMM of contiguous blocks, in tiles of 64 x 64."""
    a, b, c, d = pattern.sizes
    tiles = -(-b // 64) * -(-c // 64)
    padded = tiles * 64 * 64 / (b * c)
    busy = 2.0 * n * pattern.nonzeros / PRICES.rates.get(item, PRICES.rates[4])
    return busy * padded * max(1.0, 2 * PRICES.processors / (a * d * tiles)) + PRICES.call


def _outer_parts(grad: Tensor, x: Tensor, pattern: Pattern, parts: int) -> Tensor:
    """Compute the sums of the whole batch by `a` batched GEMMs of d x parts products of views, added in order."""
    import torch

    a, b, c, d = pattern.sizes
    sums = grad.new_empty((a, d, parts, b, c))
    left = grad.unflatten(0, (a, b, d)).unflatten(3, (parts, -1))
    right = x.unflatten(0, (a, c, d)).unflatten(3, (parts, -1))
    for i in range(a):
        blocks = left[i].permute(1, 2, 0, 3).flatten(0, 1), right[i].permute(1, 2, 3, 0).flatten(0, 1)
        torch.bmm(*blocks, out=sums[i].flatten(0, 1))
    wide = torch.float32 if grad.dtype in (torch.float16, torch.bfloat16) else grad.dtype
    return torch.sum(sums, 2, dtype=wide).to(grad.dtype)


def transposed_gradients(grad: Tensor, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return dX = K^H dY, batch-first, and dW[i, j] = dY[i, :, j] X[i, :, j]^H for batch-first dY (abd, n), X (acd, n).

    Each operand is transposed once for both; the memory of the transposed x receives dX before its transposition.
    """
    import torch

    a, d, b, c = weights.shape
    pattern, adjoint = Pattern(a, b, c, d), weights.conj().mT.resolve_conj()
    if is_gathered(pattern, x.shape[1], x.itemsize):
        left, right = gathered_blocks(grad, b, d), gathered_blocks(x, c, d)
        grad_w = torch.bmm(left, right.mH).view(weights.shape)
        torch.bmm(adjoint.flatten(0, 1), left, out=right)
        return batch_first(right, c, d), grad_w
    left, right = batch_last(grad), batch_last(x)
    grad_w = outer_tensors(left, right.conj(), a, d)
    multiply_blocks(adjoint, as_blocks(left, a, b, d), as_blocks(right, a, c, d))
    return batch_first(right), grad_w

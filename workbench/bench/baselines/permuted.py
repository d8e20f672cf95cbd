"""A batched GEMM between permutations, by operations of torch, or of numpy if torch is not installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....kernels.cpu.blas import backends
from ....kernels.kronecker import Pattern
from ....kernels.structured.blocks import is_batch_first

Array = Any


def by_bmm(weights: Array, pattern: Pattern, x: Array, out: Array) -> None:
    """Compute out (rows, n) = K x for x (cols, n): gather the blocks by a copy, run one batched GEMM, copy back.

    Source: Algorithm 1 of Gonon, Zheng, Carrivain, Le (ICML 2025), as in Monarch's code.
    """
    a, b, c, d = pattern.sizes
    n = x.shape[1]
    blocks = weights.reshape(a * d, b, c)

    def multiply(packed: Array, product: Array, first: bool) -> None:
        if first:
            left, right = packed.reshape(n, a * d, c).swapaxes(0, 1), product.reshape(n, a * d, b).swapaxes(0, 1)
            _multiply(left, blocks.swapaxes(1, 2), right)
        else:
            _multiply(blocks, packed.reshape(a * d, c, n), product.reshape(a * d, b, n))

    multiply_permuted(pattern, x, out, multiply)


def multiply_permuted(pattern: Pattern, x: Array, out: Array, multiply: Callable[[Array, Array, bool], None]) -> None:
    """Run `multiply` between the permutations that make K block diagonal, on X' (a d c, n) and Y' (a d b, n).

    Batch-first, X' and Y' are (n, a d c) and (n, a d b): features are permuted within each column of x. Trivial
    permutations are skipped, and the last one writes `out`.
    """
    a, b, c, d = pattern.sizes
    n, first = x.shape[1], is_batch_first(x)
    if first:
        packed = _contiguous(axis_split(x.T, 1, (a, c, d)), (0, 1, 3, 2)).reshape(n, a * d * c)
        target = _axes(axis_split(out.T, 1, (a, b, d)), (0, 1, 3, 2))  # (n, a, d, b)
    else:
        packed = _contiguous(axis_split(x, 0, (a, c, d)), (0, 2, 1, 3)).reshape(a * d * c, n)
        target = _axes(axis_split(out, 0, (a, b, d)), (0, 2, 1, 3))  # (a, d, b, n)
    product = target if _is_contiguous(target) else _empty(target)
    multiply(packed, product.reshape((n, a * d * b) if first else (a * d * b, n)), first)
    if product is not target:
        target[...] = product


def axis_split(x: Array, axis: int, sizes: tuple[int, int, int]) -> Array:
    """Return the view in which an axis is split into three."""
    return x.reshape(*x.shape[:axis], *sizes, *x.shape[axis + 1 :])


def _axes(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the view with permuted axes."""
    return x.transpose(axes) if isinstance(x, np.ndarray) else x.permute(axes)


def _contiguous(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the view with permuted axes, copied unless it is contiguous."""
    view = _axes(x, axes)
    return np.ascontiguousarray(view) if isinstance(view, np.ndarray) else view.contiguous()


def _is_contiguous(x: Array) -> bool:
    return bool(x.flags.c_contiguous if isinstance(x, np.ndarray) else x.is_contiguous())


def _empty(like: Array) -> Array:
    """Allocate contiguous memory of the same shape and dtype."""
    return np.empty(like.shape, like.dtype) if isinstance(like, np.ndarray) else like.new_empty(like.shape)


def _multiply(left: Array, right: Array, out: Array) -> None:
    """Compute out = left right, a batch of products."""
    if isinstance(out, np.ndarray):
        np.matmul(left, right, out=out)
        return
    import torch

    torch.bmm(left, right, out=out)


def has_torch(dtype: str) -> bool:
    """Return whether torch is installed and multiplies this dtype."""
    return any(backend.name == "torch" and backend.supports(dtype) for backend in backends())

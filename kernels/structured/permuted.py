"""The baseline: a batched GEMM between permutations, by operations of torch, or of numpy if torch is not installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..cpu.blas import as_tensor, backends
from ..cpu.workspace import Arena
from ..dtypes import dtype_of
from ..planning.strategy import Stage
from .blocks import empty_result, is_batch_first
from .pattern import Pattern

Array = Any

BMM = "bmm"


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


@dataclass(frozen=True)
class PermutedProduct:
    """K1 ... KL X factor by factor by `by_bmm`; a `StagedCore` whose first operand is the factors."""

    patterns: tuple[Pattern, ...]
    batch: int
    dtype: str

    @property
    def _itemsize(self) -> int:
        return dtype_of(self.dtype).numpy.itemsize

    def workspace(self, threads: int) -> int:
        """See `Core.workspace`: 0, as the library allocates its own memory."""
        return 0

    def compile(self) -> None:
        """See `StagedCore.compile`: there is no code to compile."""

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        """See `StagedCore.stages`: the permutations and the products."""
        item, found = self._itemsize, []
        flop = 2 * dtype_of(self.dtype).parts ** 2
        for pattern in reversed(self.patterns):
            elements = (pattern.rows + pattern.cols) * self.batch
            blocks = pattern.a * pattern.d
            name = f"{blocks} blocks {pattern.b}x{pattern.c}"
            flops = times * flop * pattern.nonzeros * self.batch
            moved = times * (elements + pattern.nonzeros) * item
            found.append(Stage(name, flops, moved, product=(pattern.b, pattern.c, self.batch)))
            if pattern.d > 1 or pattern.a > 1:
                found.append(Stage("permutations", 0, 2 * times * elements * item))
        return found

    def run(self, a: Any, b: Array, out: Array, arena: Arena, threads: int) -> None:
        """See `Core.run`."""
        x, target = b, out
        if has_torch(self.dtype):
            a = [as_tensor(weights, self.dtype) for weights in a]
            x, target = as_tensor(b, self.dtype), as_tensor(out, self.dtype)
        for place in reversed(range(len(self.patterns))):
            pattern = self.patterns[place]
            product = target if place == 0 else empty_result(x, pattern.rows, is_batch_first(x))
            by_bmm(a[place], pattern, x, product)
            x = product

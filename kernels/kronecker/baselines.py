"""The baseline products: permuted batched GEMM, einsum, and sparse formats.

Each uses operations of torch, or of numpy if torch is not installed; on the CPU they are
`StagedCore`s whose first operand is the factors (for bsr and csr the matrices that `rewrites.rewritten` returns).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import PlanError
from ..cpu.blas import as_tensor, backends
from ..cpu.workspace import Arena
from ..dtypes import dtype_of
from ..planning.strategy import Stage
from .blocks import empty_result, is_batch_first
from .pattern import Pattern

Array = Any

BMM, EINSUM, BSR, CSR = "bmm", "einsum", "bsr", "csr"

SPARSE = (BSR, CSR)
"""Baselines whose first operands are sparse torch matrices."""


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

    _permuted(pattern, x, out, multiply)


def by_bsr(weights: Array, pattern: Pattern, x: Array, out: Array) -> None:
    """Compute the same for torch tensors, with the permuted factor as one matrix of compressed block rows, `weights`.

    Source: BSR of the same paper.
    """

    def multiply(packed: Array, product: Array, first: bool) -> None:
        _multiply_sparse(weights, packed.T if first else packed, product.T if first else product)

    _permuted(pattern, x, out, multiply)


def _permuted(pattern: Pattern, x: Array, out: Array, multiply: Callable[[Array, Array, bool], None]) -> None:
    """Run `multiply` between the permutations that make K block diagonal, on X' (a d c, n) and Y' (a d b, n).

    Batch-first, X' and Y' are (n, a d c) and (n, a d b): features are permuted within each column of x. Trivial
    permutations are skipped, and the last one writes `out`.
    """
    a, b, c, d = pattern.sizes
    n, first = x.shape[1], is_batch_first(x)
    if first:
        packed = _contiguous(_split(x.T, 1, (a, c, d)), (0, 1, 3, 2)).reshape(n, a * d * c)
        target = _axes(_split(out.T, 1, (a, b, d)), (0, 1, 3, 2))  # (n, a, d, b)
    else:
        packed = _contiguous(_split(x, 0, (a, c, d)), (0, 2, 1, 3)).reshape(a * d * c, n)
        target = _axes(_split(out, 0, (a, b, d)), (0, 2, 1, 3))  # (a, d, b, n)
    product = target if _is_contiguous(target) else _empty(target)
    multiply(packed, product.reshape((n, a * d * b) if first else (a * d * b, n)), first)
    if product is not target:
        target[...] = product


def by_einsum(weights: Array, pattern: Pattern, x: Array, out: Array) -> None:
    """Compute out (rows, n) = K x for x (cols, n) as one tensor contraction.

    torch's einsum has no `out`: its result, whose axes it permutes without a copy, is copied once. If that result
    is in order already (d = 1 and batch-last), the contraction is `by_bmm`'s product.
    """
    a, b, c, d = pattern.sizes
    if is_batch_first(x):
        text, given = "niqj,ijpq->nipj", (_split(x.T, 1, (a, c, d)), weights)
        target = _split(out.T, 1, (a, b, d))
    elif d == 1:
        by_bmm(weights, pattern, x, out)
        return
    else:
        text, given = "ijpq,iqjn->ipjn", (weights, _split(x, 0, (a, c, d)))
        target = _split(out, 0, (a, b, d))
    if isinstance(x, np.ndarray):
        np.einsum(text, *given, out=target, optimize=True)
        return
    import torch

    target.copy_(torch.einsum(text, *given))


def by_csr(weights: Array, pattern: Pattern, x: Array, out: Array) -> None:
    """Compute out (rows, n) = K x for torch tensors, with K as `weights` in compressed sparse rows."""
    _multiply_sparse(weights, x, out)


def _multiply_sparse(weights: Array, x: Array, out: Array) -> None:
    """Compute out = weights x for a sparse torch matrix, which is not supported for every dtype and device.

    Raises:
        PlanError: torch does not support this product.
    """
    import torch

    try:
        torch.matmul(weights, x, out=out)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise PlanError(f"torch does not multiply this sparse matrix: {reason}") from None


def _split(x: Array, axis: int, sizes: tuple[int, int, int]) -> Array:
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


PRODUCTS = {BMM: by_bmm, EINSUM: by_einsum, BSR: by_bsr, CSR: by_csr}
"""The baselines by name: product(weights, pattern, x, out)."""


def has_torch(dtype: str) -> bool:
    """Return whether torch is installed and multiplies this dtype."""
    return any(backend.name == "torch" and backend.supports(dtype) for backend in backends())


@dataclass(frozen=True)
class BaselineProduct:
    """K1 ... KL X factor by factor by one of the baselines; a `StagedCore`."""

    patterns: tuple[Pattern, ...]
    batch: int
    dtype: str
    first: bool
    last: bool
    kind: str

    @property
    def _itemsize(self) -> int:
        return dtype_of(self.dtype).numpy.itemsize

    def workspace(self, threads: int) -> int:
        """See `Core.workspace`: 0, as the library allocates its own memory."""
        return 0

    def compile(self) -> None:
        """See `StagedCore.compile`: there is no code to compile."""

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        """See `StagedCore.stages`: the permutations (einsum's are inside the library), and the products."""
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
            a = a if self.kind in SPARSE else [as_tensor(weights, self.dtype) for weights in a]
            x, target = as_tensor(b, self.dtype), as_tensor(out, self.dtype)
        for place in reversed(range(len(self.patterns))):
            pattern = self.patterns[place]
            product = target if place == 0 else empty_result(x, pattern.rows, is_batch_first(x))
            PRODUCTS[self.kind](a[place], pattern, x, product)
            x = product

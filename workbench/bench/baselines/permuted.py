"""A batched GEMM between permutations, by operations of torch, or of numpy if torch is not installed."""

from __future__ import annotations

from collections.abc import Callable

from ....kernels.cpu.blas import backends
from ....kernels.kronecker import Pattern
from ....kernels.structured.blocks import is_batch_first
from .product import Array, batched_product, copied, empty, is_contiguous, permuted


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
            batched_product(left, blocks.swapaxes(1, 2), right)
        else:
            batched_product(blocks, packed.reshape(a * d, c, n), product.reshape(a * d, b, n))

    multiply_permuted(pattern, x, out, multiply)


def multiply_permuted(pattern: Pattern, x: Array, out: Array, multiply: Callable[[Array, Array, bool], None]) -> None:
    """Run `multiply` between the permutations that make K block diagonal, on X' (a d c, n) and Y' (a d b, n).

    Batch-first, X' and Y' are (n, a d c) and (n, a d b): features are permuted within each column of x. Trivial
    permutations are skipped, and the last one writes `out`.
    """
    a, b, c, d = pattern.sizes
    n, first = x.shape[1], is_batch_first(x)
    if first:
        packed = copied(permuted(axis_split(x.T, 1, (a, c, d)), (0, 1, 3, 2))).reshape(n, a * d * c)
        target = permuted(axis_split(out.T, 1, (a, b, d)), (0, 1, 3, 2))  # (n, a, d, b)
    else:
        packed = copied(permuted(axis_split(x, 0, (a, c, d)), (0, 2, 1, 3))).reshape(a * d * c, n)
        target = permuted(axis_split(out, 0, (a, b, d)), (0, 2, 1, 3))  # (a, d, b, n)
    product = target if is_contiguous(target) else empty(target, target.shape)
    multiply(packed, product.reshape((n, a * d * b) if first else (a * d * b, n)), first)
    if product is not target:
        target[...] = product


def axis_split(x: Array, axis: int, sizes: tuple[int, int, int]) -> Array:
    """Return the view in which an axis is split into three."""
    return x.reshape(*x.shape[:axis], *sizes, *x.shape[axis + 1 :])


def has_torch(dtype: str) -> bool:
    """Return whether torch is installed and multiplies this dtype."""
    return any(backend.name == "torch" and backend.supports(dtype) for backend in backends())

"""Products by Kronecker-sparse factors: permuted batched GEMMs, one tensor contraction, and torch's sparse formats.

Sources: the baselines of Gonon, Zheng, Carrivain, Le, "Fast Inference with Kronecker-Sparse Matrices" (ICML 2025).
"""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....errors import PlanError
from ....kernels import Request
from ....kernels.arrays import torch
from ....kernels.cpu.blas import as_tensor, backends
from ....kernels.kronecker import Pattern
from ....kernels.structured.blocks import contiguous, empty_result, is_batch_first, permuted
from ....kernels.structured.strategy import chain_in
from . import Array, Baseline, Factors, batched_product, empty, is_contiguous


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
        packed = contiguous(permuted(axis_split(x.T, 1, (a, c, d)), (0, 1, 3, 2))).reshape(n, a * d * c)
        target = permuted(axis_split(out.T, 1, (a, b, d)), (0, 1, 3, 2))  # (n, a, d, b)
    else:
        packed = contiguous(permuted(axis_split(x, 0, (a, c, d)), (0, 2, 1, 3))).reshape(a * d * c, n)
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


def baseline(request: Request, name: str) -> Baseline:
    """Return bmm, einsum, or a sparse format: bsr or csr.

    Raises:
        PlanError: torch is not installed and the format is torch's.
    """
    patterns, item = chain_in(request).patterns, request.itemsize
    moved = 2 * request.n * max(one.rows + one.cols for one in patterns) * item
    product = partial(by_factors, PRODUCTS[name], patterns, request.dtype)
    if name not in COMPRESSED:
        return Baseline(request, name, product, moved)
    if importlib.util.find_spec("torch") is None:
        raise PlanError("the sparse formats are torch's; install torch")
    sides = [block_side(one) if name == "bsr" else 1 for one in patterns]
    held = sum(
        # torch's indices have 8 bytes each.
        one.nonzeros * item + 8 * (one.nonzeros // side**2 + one.rows // side + 1)
        for one, side in zip(patterns, sides, strict=True)
    )
    compress = COMPRESSED[name]
    held += moved if name == "bsr" else 0
    return Baseline(request, name, product, held, lambda factors: tuple(map(compress, factors, patterns)))


def by_einsum(weights: Array, pattern: Pattern, x: Array, out: Array) -> None:
    """Compute out (rows, n) = K x for x (cols, n) as one tensor contraction.

    torch's einsum has no `out`: its result, whose axes it permutes without a copy, is copied once. If that result
    is in order already (d = 1 and batch-last), the contraction is the product of `by_bmm`.
    """
    a, b, c, d = pattern.sizes
    if is_batch_first(x):
        text, given = "niqj,ijpq->nipj", (axis_split(x.T, 1, (a, c, d)), weights)
        target = axis_split(out.T, 1, (a, b, d))
    elif d == 1:
        by_bmm(weights, pattern, x, out)
        return
    else:
        text, given = "ijpq,iqjn->ipjn", (weights, axis_split(x, 0, (a, c, d)))
        target = axis_split(out, 0, (a, b, d))
    if isinstance(x, np.ndarray):
        np.einsum(text, *given, out=target, optimize=True)
        return
    target.copy_(torch.einsum(text, *given))


def by_bsr(weights: Array, pattern: Pattern, x: Array, out: Array) -> None:
    """Compute the same for torch tensors, with `weights` the permuted factor in compressed block rows."""

    def multiply(packed: Array, product: Array, first: bool) -> None:
        by_csr(weights, pattern, packed.T if first else packed, product.T if first else product)

    multiply_permuted(pattern, x, out, multiply)


def by_csr(weights: Array, pattern: Pattern, x: Array, out: Array) -> None:
    """Compute out (rows, n) = K x for torch tensors, with K as a sparse matrix `weights`.

    Raises:
        PlanError: torch does not support this product, for its dtype or device.
    """
    try:
        torch.matmul(weights, x, out=out)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise PlanError(f"torch does not multiply this sparse matrix: {reason}") from None


PRODUCTS: dict[str, Callable[[Array, Pattern, Array, Array], None]] = {
    "bmm": by_bmm,
    "einsum": by_einsum,
    "bsr": by_bsr,
    "csr": by_csr,
}
"""The methods by name: product(weights, pattern, x, out)."""


def by_factors(product: Any, patterns: Sequence[Pattern], dtype: str, factors: Factors, x: Array, out: Array) -> None:
    """Multiply by all factors, right-most first; by torch where it is installed."""
    if isinstance(out, np.ndarray) and has_torch(dtype):
        factors = [as_tensor(one, dtype) if isinstance(one, np.ndarray) else one for one in factors]
        x, out = as_tensor(x, dtype), as_tensor(out, dtype)
    for place in reversed(range(len(patterns))):
        result = empty_result(x, patterns[place].rows, is_batch_first(x)) if place else out
        product(factors[place], patterns[place], x, result)
        x = result


def compressed(weights: Array, pattern: Pattern) -> Array:
    """Return K in torch's compressed sparse rows."""
    weights = as_tensor(weights, str(weights.dtype)) if isinstance(weights, np.ndarray) else weights
    a, b, c, d = pattern.sizes
    i, j, q = (torch.arange(size, device=weights.device) for size in (a, d, c))
    cols = (i[:, None, None] * c + q) * d + j[None, :, None]  # (a, d, c), the same for every p
    cols = cols[:, None].expand(a, b, d, c).reshape(-1)
    starts = torch.arange(0, pattern.nonzeros + 1, c, device=weights.device)
    values = weights.swapaxes(1, 2).reshape(-1)
    return _made(torch.sparse_csr_tensor, starts, cols, values, pattern)


def block_side(pattern: Pattern) -> int:
    """Return the side of the blocks of a compressed factor: torch's block-sparse products support square ones."""
    return math.gcd(pattern.b, pattern.c)


def block_compressed(weights: Array, pattern: Pattern) -> Array:
    """Return the block diagonal matrix of all blocks (i, j) in torch's compressed block rows."""
    weights = as_tensor(weights, str(weights.dtype)) if isinstance(weights, np.ndarray) else weights
    a, b, c, d = pattern.sizes
    side, blocks = block_side(pattern), a * d
    high, wide = b // side, c // side
    k, q = (torch.arange(size, device=weights.device) for size in (blocks, wide))
    cols = (k[:, None, None] * wide + q).expand(blocks, high, wide).reshape(-1)
    starts = torch.arange(0, blocks * high * wide + 1, wide, device=weights.device)
    values = weights.reshape(blocks, high, side, wide, side).swapaxes(2, 3).reshape(-1, side, side).contiguous()
    return _made(torch.sparse_bsr_tensor, starts, cols, values, pattern)


def _made(make: Callable[..., Array], starts: Array, cols: Array, values: Array, pattern: Pattern) -> Array:
    with warnings.catch_warnings():  # ignores the warning that torch's sparse formats are in beta state
        warnings.simplefilter("ignore")
        return make(starts, cols, values, (pattern.rows, pattern.cols), check_invariants=False)


COMPRESSED = {"bsr": block_compressed, "csr": compressed}
"""What the sparse formats make of a factor (weights, pattern)."""

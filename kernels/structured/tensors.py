"""Products of tensors by one factor: batched GEMMs of blocks, and our Triton kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from ..cuda.launch import Repeated
from ..precision import ACCURATE, TF32
from .blocks import Tensor, empty_result
from .pattern import Pattern
from .tiles import FactorTile

INPUT_PRECISIONS = {TF32: "tf32", ACCURATE: "tf32x3"}
"""Triton's `input_precision` by arithmetic."""

FactorProduct = Callable[[Any, Pattern, Tensor, Tensor], None]
"""multiply(weights, pattern, x, out): out (rows, n) = K x for x (cols, n)."""


def is_readable(matrix: Tensor, d: int) -> bool:
    """Return whether a GEMM can read blocks of a matrix (features, n) in place: batch-last, or d = 1."""
    return matrix.stride(1) == 1 or matrix.shape[1] == 1 or (d == 1 and matrix.stride(0) == 1)


def strides_of(matrix: Tensor) -> tuple[int, int]:
    """Return the strides of a matrix (features, n); a single column has that of contiguous ones.

    Triton compiles a kernel anew for a stride of 1, which a single column may have or not.
    """
    feature, column = matrix.stride()
    return (feature, column) if matrix.shape[1] != 1 else (feature, matrix.shape[0] * feature)


def multiply_batch(weights: Tensor, x: Tensor, out: Tensor) -> None:
    """Compute out (count, b, n) = weights (count, b, c) x (count, c, n) by the vendor's product."""
    import torch

    if len(weights) == 1:
        torch.mm(weights[0], x[0], out=out[0])
    else:
        torch.bmm(weights, x, out=out)


def multiply_blocks(weights: Tensor, x: Tensor, out: Tensor) -> None:
    """Compute out (a, d, b, n) = weights (a, d, b, c) x (a, d, c, n) by one batch, or by min(a, d) batches."""
    for batch in block_batches(weights, x, out):
        multiply_batch(*batch)


def block_batches(weights: Tensor, x: Tensor, out: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield views (count, b, c), (count, c, n), (count, b, n): one of all blocks if strides permit, else min(a, d).

    With a = d every batch has the blocks of one i, whose rows are neighbours in memory.
    """
    a, d = weights.shape[:2]
    every = weights, x, out
    if all(1 in (a, d) or one.stride(0) == d * one.stride(1) for one in every):
        yield weights.flatten(0, 1), x.flatten(0, 1), out.flatten(0, 1)
    elif d < a:
        for j in range(d):
            yield weights[:, j], x[:, j], out[:, j]
    else:
        for i in range(a):
            yield weights[i], x[i], out[i]


def kernel_of(tile: FactorTile) -> Any:
    """Return the Triton kernel that runs a tile."""
    from .tiled_kernel import multiply_factor, multiply_neighbours

    return multiply_neighbours if tile.j > 1 else multiply_factor


def multiply_tiled(
    weights: Tensor, pattern: Pattern, x: Tensor, out: Tensor, arithmetic: str, tile: FactorTile
) -> None:
    """Compute out (rows, n) = K x (cols, n) by the Triton kernel, for any strides; see `tiled_reason` for its limits.

    `arithmetic` is that of the request: float32 may be multiplied strictly, as tf32, or as three products of tf32.
    """
    strides = *strides_of(x), *strides_of(out)
    launch = _tiled_launch(pattern, x.shape[1], strides, (x.device, x.dtype), arithmetic, tile)
    launch(x, weights, out)


@lru_cache(maxsize=1024)
def _tiled_launch(
    pattern: Pattern, n: int, strides: tuple[int, ...], of: tuple[Any, Any], arithmetic: str, tile: FactorTile
) -> Repeated:
    """Return the launch of `multiply_tiled` for these strides, on a device and of tensors of a dtype (`of`)."""
    _, b, c, d = pattern.sizes
    return Repeated(
        kernel_of(tile),
        (tile.programs(pattern, n),),
        ("x", "weights", "y"),
        **{"n": n, "b": b, "c": c, **dict(zip(("x_feature", "x_batch", "y_feature", "y_batch"), strides, strict=True))},
        **{"D": d, "PRECISION": INPUT_PRECISIONS.get(arithmetic, "ieee"), "DOUBLE": arithmetic == "float64"},
        **{"N": tile.n, "P": tile.p, "Q": tile.q, "J": tile.j, "num_warps": tile.warps, "num_stages": tile.stages},
    )


def factor_by_factor(
    multiply: FactorProduct, patterns: Sequence[Pattern], factors: Sequence[Any], x: Tensor, out: Tensor
) -> None:
    """Compute out (rows, n) = K1 ... KL x, right-most factor first; results between factors are batch-last."""
    for place in reversed(range(len(patterns))):
        target = empty_result(x, patterns[place].rows, first=False) if place else out
        multiply(factors[place], patterns[place], x, target)
        x = target

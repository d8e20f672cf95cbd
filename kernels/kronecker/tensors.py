"""Products by one Kronecker-sparse factor on tensors: batched GEMMs on views, and our Triton kernel."""

from __future__ import annotations

from typing import Any

from ..cuda.launch import starter
from .pattern import Pattern
from .tiles import FactorTile

Tensor = Any


def is_readable(matrix: Tensor, d: int) -> bool:
    """Whether a GEMM reads blocks of a matrix (features, n) as they are: batch-last, or d = 1."""
    return matrix.stride(1) == 1 or matrix.shape[1] == 1 or (d == 1 and matrix.stride(0) == 1)


def multiply_strided(weights: Tensor, pattern: Pattern, x: Tensor, out: Tensor) -> None:
    """out (rows, n) = K x (cols, n) by min(a, d) batched GEMMs on views of x and out, of which nothing is copied.

    Both are batch-last, or d = 1.
    """
    import torch

    a, b, c, d = pattern.sizes
    n = x.shape[1]
    blocks, results = x.unflatten(0, (a, c, d)), out.unflatten(0, (a, b, d))
    if d <= a:
        for j in range(d):
            torch.bmm(weights[:, j], blocks[:, :, j], out=results[:, :, j])
        return
    for i in range(a):
        left, right, target = weights[i], blocks[i].transpose(0, 1), results[i].transpose(0, 1)
        torch.bmm(left.view(d, b, c), right.view(d, c, n), out=target)


def kernel_of(tile: FactorTile) -> Any:
    """The Triton kernel that runs a tile."""
    if tile.j in (2, 4):
        from .neighbour_kernel import multiply_neighbours

        return multiply_neighbours
    from .tiled_kernel import multiply_factor

    return multiply_factor


def multiply_tiled(weights: Tensor, pattern: Pattern, x: Tensor, out: Tensor, dtype: str, tile: FactorTile) -> None:
    """out (rows, n) = K x (cols, n) by the Triton kernel, for any strides; `tiled_reason` says whether it can.

    `dtype` is that of the request: float32 may be multiplied strictly, as tf32, or as three products of tf32.
    """
    kernel = kernel_of(tile)
    _, b, c, d = pattern.sizes
    n = x.shape[1]
    starter(kernel, (tile.programs(pattern, n),), x)(
        x,
        weights,
        out,
        n,
        b,
        c,
        *x.stride(),
        *out.stride(),
        D=d,
        PRECISION=dtype if dtype in ("tf32", "tf32x3") else "ieee",
        DOUBLE=dtype == "float64",
        N=tile.n,
        P=tile.p,
        Q=tile.q,
        J=tile.j,
        num_warps=tile.warps,
        num_stages=tile.stages,
    )

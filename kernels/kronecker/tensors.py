"""Products by one Kronecker-sparse factor on tensors: batched GEMMs on views, and our Triton kernel."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..cuda.launch import starter
from .pattern import Pattern

Tensor = Any


@dataclass(frozen=True)
class FactorTile:
    """What one program of the kernel computes: columns of the batch, rows p, steps over q, diagonals j."""

    n: int
    p: int
    q: int
    j: int
    warps: int
    stages: int


TILES = {
    "float32": FactorTile(64, 64, 16, 4, 8, 2),
    "tf32": FactorTile(64, 64, 16, 4, 8, 2),
    "float16": FactorTile(64, 64, 16, 4, 8, 2),
    "bfloat16": FactorTile(64, 64, 16, 4, 8, 2),
    "float64": FactorTile(32, 32, 16, 4, 8, 2),
}
"""By dtype. The prototype's tile, which was measured on an H200 with four warps; with eight nothing spills on sm_90."""

MOST_PROGRAMS = 65535
"""Most programs along the second and third axis of a grid."""


def tiled_reason(patterns: Sequence[Pattern], n: int, dtype: str) -> str | None:
    """Why the Triton kernel does not multiply by these patterns; None: it does."""
    if importlib.util.find_spec("triton") is None:
        return "the kernel needs Triton: pip install 'lcma[torch]' on Linux"
    for one in patterns:
        if max(one.a, -(-one.d // TILES[dtype].j)) > MOST_PROGRAMS:
            return f"{one} has more blocks than the kernel's grid takes; choose the strategy strided"
    return None


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


def multiply_tiled(
    weights: Tensor, pattern: Pattern, x: Tensor, out: Tensor, dtype: str, tile: FactorTile | None = None
) -> None:
    """out (rows, n) = K x (cols, n) by the Triton kernel, for any strides; `tiled_reason` says whether it can."""
    from .tiled_kernel import multiply_factor

    a, b, c, d = pattern.sizes
    n = x.shape[1]
    tile = TILES[dtype] if tile is None else tile
    grid = -(-n // tile.n) * -(-b // tile.p), a, -(-d // tile.j)
    starter(multiply_factor, grid, x)(
        x,
        weights,
        out,
        n,
        b,
        c,
        d,
        *x.stride(),
        *out.stride(),
        PRECISION="tf32" if dtype == "tf32" else "ieee",
        DOUBLE=dtype == "float64",
        N=tile.n,
        P=tile.p,
        Q=tile.q,
        J=tile.j,
        num_warps=tile.warps,
        num_stages=tile.stages,
    )

"""Linear maps of blocks in plain torch: the reference for the generated kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ...schemes_db.grids import Kind
from ..arrays import Tensor, torch
from ..codegen import naive
from ..codegen.maps import LinearMap
from ..codegen.triton_text import Direction
from .combine import Combination


def apply_map(linear: LinearMap, blocks: Sequence[Tensor]) -> list[Tensor]:
    """Return the results of the map on blocks of one shape.

    Sums are computed in float32, in float64 for float64, and in int32 for integers, modulo 2^32. A result without
    terms is zero.
    """
    dtype = blocks[0].dtype
    real = torch.float64 if dtype == torch.float64 else torch.float32 if dtype.is_floating_point else torch.int32
    return [result.to(dtype) for result in naive.apply_map(linear, [block.to(real) for block in blocks])]


def combine(combination: Combination, matrix: Tensor, stack: Tensor) -> None:
    """Run `combination.run`, or plain torch on CPU tensors if Triton does not interpret its kernels."""
    if takes_triton(matrix):
        combination.run(matrix, stack)
        return
    (height, width), form = stack.shape[2:], combination.form
    grid = max(i for i, _ in form.blocks) + 1, max(j for _, j in form.blocks) + 1
    places = list(zip(form.blocks, form.kinds or [Kind.FULL] * len(form.blocks), strict=True))
    for item, slabs in zip(matrix, stack, strict=True):
        if form.direction is Direction.TO_STACK:
            cut = blocks_of(padded(item, height, width, grid), grid)
            results = apply_map(form.map, [_part(cut[block], kind) for block, kind in places])
            for slab, result in zip(slabs, results, strict=True):
                slab.copy_(result)
        else:
            for ((i, j), kind), result in zip(places, apply_map(form.map, list(slabs)), strict=True):
                target = item[i * height : (i + 1) * height, j * width : (j + 1) * width]
                target.copy_(_part(result, kind)[: target.shape[0], : target.shape[1]])


def takes_triton(tensor: Tensor) -> bool:
    """Return whether Triton runs, compiles or interprets kernels for this tensor."""
    return bool(tensor.is_cuda or tensor.is_meta or _interpreted())


@lru_cache(maxsize=1)
def _interpreted() -> bool:
    """Return whether Triton interprets its kernels on CPU tensors."""
    try:
        from triton import knobs
    except ImportError:
        return False
    return bool(knobs.runtime.interpret)


def int8_product(a: Tensor, b: Tensor) -> Tensor:
    """Return A B^T modulo 2^32 (m, n) for A (m, k) and B (n, k) of int8."""
    return (a.to(torch.int64) @ b.to(torch.int64).mT).to(torch.int32)


def _part(block: Tensor, kind: Kind) -> Tensor:
    if kind is Kind.LOWER:
        return block.tril()
    return block.triu() if kind is Kind.UPPER else block


def padded(x: Tensor, height: int, width: int, grid: tuple[int, int]) -> Tensor:
    """Return a matrix with zeros up to whole blocks of this size, grid[0] down and grid[1] across."""
    return torch.nn.functional.pad(x, (0, width * grid[1] - x.shape[1], 0, height * grid[0] - x.shape[0]))


def blocks_of(x: Tensor, grid: tuple[int, int]) -> dict[tuple[int, int], Tensor]:
    """Return views of the blocks of a matrix that the grid divides."""
    height, width = x.shape[0] // grid[0], x.shape[1] // grid[1]
    return {
        (i, j): x[i * height : (i + 1) * height, j * width : (j + 1) * width]
        for i in range(grid[0])
        for j in range(grid[1])
    }

"""Products of tensors by one factor: batched GEMMs of blocks, and our Triton kernels with their tiles.

A tile fits the limit of a grid; tensor cores multiply its padding too. Small blocks, which they would pad, are gathered
by a kernel on scalar units.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..cuda.dtypes import itemsize
from ..cuda.launch import Repeated, starter
from ..precision import ACCURATE, TF32
from .blocks import Tensor, empty_result
from .pattern import Pattern

LEAST_SIDE = 16
"""Minimum side of a tile that tensor cores multiply."""

MOST_PROGRAMS = (1 << 31) - 1
"""Maximum number of programs of a grid."""


@dataclass(frozen=True)
class FactorTile:
    """The tile of one program of the kernel: columns of the batch, rows p, steps over q, diagonals j."""

    n: int
    p: int
    q: int
    j: int
    warps: int
    stages: int

    def fitted(self, pattern: Pattern) -> FactorTile:
        """Return the tile limited to the rows and diagonals of a pattern, rounded up to powers of two."""
        rows = min(self.p, max(LEAST_SIDE, power_above(pattern.b)))
        return replace(self, p=rows, j=min(self.j, power_above(pattern.d)))

    def padded(self, pattern: Pattern) -> float:
        """Return the multiplications per column of the batch, including the padding of b, c and d."""
        a, b, _, d = pattern.sizes
        return float(a * _up(b, self.p) * self.sum_length(pattern) * _up(d, self.j))

    def sum_length(self, pattern: Pattern) -> int:
        """Return c rounded up to whole steps."""
        return _up(pattern.c, self.q)

    def programs(self, pattern: Pattern, n: int) -> int:
        """Return the number of programs of the grid for n columns."""
        return pattern.a * -(-pattern.b // self.p) * -(-pattern.d // self.j) * -(-n // self.n)


_WIDE_SINGLE = (FactorTile(64, 64, 32, 1, 4, 3), FactorTile(128, 64, 32, 1, 8, 3), FactorTile(128, 32, 32, 1, 4, 3))
_WIDE_SEVERAL = (FactorTile(64, 64, 16, 4, 8, 2), FactorTile(128, 64, 16, 2, 8, 2), FactorTile(64, 32, 16, 4, 4, 2))
_HALF_SINGLE = (FactorTile(128, 64, 64, 1, 4, 3), FactorTile(128, 128, 64, 1, 8, 3), FactorTile(64, 64, 64, 1, 4, 3))
_HALF_SEVERAL = (FactorTile(64, 64, 32, 4, 8, 2), FactorTile(128, 64, 32, 2, 8, 2), FactorTile(64, 32, 32, 4, 4, 2))

TILES: dict[str, tuple[tuple[FactorTile, ...], tuple[FactorTile, ...]]] = {
    "float32": (_WIDE_SINGLE, _WIDE_SEVERAL),
    "tf32": (_WIDE_SINGLE, _WIDE_SEVERAL),
    ACCURATE: (_WIDE_SINGLE, _WIDE_SEVERAL),
    "float16": (_HALF_SINGLE, _HALF_SEVERAL),
    "bfloat16": (_HALF_SINGLE, _HALF_SEVERAL),
    "float64": ((FactorTile(32, 32, 16, 1, 4, 2),), (FactorTile(32, 32, 16, 4, 8, 2),)),
}
"""Tiles by arithmetic: of one diagonal, for d = 1, and of two or four, for d > 1. No registers are spilled on sm_90."""


def tile_choices(dtype: str) -> int:
    """Return the number of choices of a tile for a dtype."""
    return max(map(len, TILES[dtype]))


@lru_cache(maxsize=1024)
def tile_of(dtype: str, pattern: Pattern, choice: int) -> FactorTile:
    """Return the tile of a choice, fitted to a pattern."""
    tiles = TILES[dtype][pattern.d > 1]
    return tiles[min(choice, len(tiles) - 1)].fitted(pattern)


def tiled_reason(patterns: Sequence[Pattern], n: int, dtype: str, choice: int) -> str | None:
    """Return the reason why the Triton kernel does not support these patterns, or None."""
    if dtype not in TILES:
        return f"the kernel's tiles are of real numbers, not {dtype}; choose the strategy strided"
    return grid_reason(patterns, lambda one: tile_of(dtype, one, choice).programs(one, n))


LARGEST_BLOCK = 32
"""Maximum side of a block that is gathered: larger ones are compute-bound, and faster by tiles."""

ELEMENTS, ROWS = 4096, 16
"""Words of 4 bytes of Y that a program of 128 threads computes, and the maximum number of rows p among its elements."""


def gather_tile(pattern: Pattern, first: bool, item: int) -> FactorTile:
    """Return the tile of a pattern for sums of elements of `item` bytes, of one word at least.

    It has more of what is contiguous: diagonals (`first`: batch-first), or columns.
    """
    p = min(ROWS, power_above(pattern.b))
    rest = max(16, ELEMENTS // p // max(1, item // 4))
    j = min(power_above(pattern.d), rest // 4 if first else max(1, rest // 128))
    return FactorTile(rest // j, p, 1, j, 4, 0)


def gather_reason(patterns: Sequence[Pattern], n: int, dtype: str) -> str | None:
    """Return the reason why the kernel does not support these patterns, or None."""
    large = next((one for one in patterns if max(one.b, one.c) > LARGEST_BLOCK), None)
    if large is not None and triton_reason() is None:
        return f"blocks of {large} are larger than the {LARGEST_BLOCK} x {LARGEST_BLOCK} that are gathered"
    return grid_reason(patterns, lambda one: gather_tile(one, True, itemsize(dtype)).programs(one, n))


def grid_reason(patterns: Sequence[Pattern], programs: Callable[[Pattern], int]) -> str | None:
    """Return the reason why kernels of so many programs do not multiply these patterns here, or None."""
    if reason := triton_reason():
        return reason
    many = next((one for one in patterns if programs(one) > MOST_PROGRAMS), None)
    return None if many is None else f"{many} has more blocks than the kernel's grid takes; choose the strategy strided"


def triton_reason() -> str | None:
    """Return the reason why Triton kernels cannot run here, or None."""
    missing = importlib.util.find_spec("triton") is None
    return "the kernel needs Triton: pip install 'lcma[torch]' on Linux" if missing else None


def power_above(size: int) -> int:
    """Return the least power of two that is not below a size."""
    return 1 << (size - 1).bit_length()


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


INPUT_PRECISIONS = {TF32: "tf32", ACCURATE: "tf32x3"}
"""Triton's `input_precision` by arithmetic."""

FactorProduct = Callable[[Any, Pattern, Tensor, Tensor], None]
"""multiply(weights, pattern, x, out): out (rows, n) = K x for x (cols, n) and contiguous parameters of any shape."""


def is_readable(matrix: Tensor, d: int) -> bool:
    """Return whether a GEMM can read blocks of a matrix (features, n) in place: batch-last, or d = 1."""
    return matrix.stride(1) == 1 or matrix.shape[1] == 1 or (d == 1 and matrix.stride(0) == 1)


def strides_of(matrix: Tensor) -> tuple[int, int]:
    """Return the strides of a matrix (features, n); a single column has that of contiguous ones.

    Triton compiles a kernel anew for a stride of 1, which a single column may have or not.
    """
    (feature, column), (features, columns) = matrix.stride(), matrix.shape
    return (feature, column) if columns != 1 else (feature, features * feature)


def multiply_batch(weights: Tensor, x: Tensor, out: Tensor) -> None:
    """Compute out (count, b, n) = weights (count, b, c) x (count, c, n) by the vendor's product."""
    import torch

    if len(weights) == 1:
        torch.mm(weights[0], x[0], out=out[0])
    else:
        torch.bmm(weights, x, out=out)


def multiply_blocks(weights: Tensor, x: Tensor, out: Tensor) -> None:
    """Compute out (a, d, b, n) = weights (a, d, b, c) x (a, d, c, n) by one batch if strides permit, else min(a, d).

    With a = d every batch has the blocks of one i, whose rows are neighbours in memory.
    """
    a, d = weights.shape[:2]
    every = weights, x, out
    if all(1 in (a, d) or one.stride(0) == d * one.stride(1) for one in every):
        multiply_batch(*(one.flatten(0, 1) for one in every))
    elif d < a:
        for j in range(d):
            multiply_batch(*(one[:, j] for one in every))
    else:
        for i in range(a):
            multiply_batch(*(one[i] for one in every))


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
    from .factor_kernels import multiply_factor

    _, b, c, d = pattern.sizes
    return Repeated(
        multiply_factor,
        (tile.programs(pattern, n),),
        ("x", "weights", "y"),
        **{"n": n, "b": b, "c": c, **dict(zip(("x_feature", "x_batch", "y_feature", "y_batch"), strides, strict=True))},
        **{"D": d, "PRECISION": INPUT_PRECISIONS.get(arithmetic, "ieee"), "DOUBLE": arithmetic == "float64"},
        **{"N": tile.n, "P": tile.p, "Q": tile.q, "J": tile.j, "num_warps": tile.warps, "num_stages": tile.stages},
    )


def multiply_small(weights: Tensor, pattern: Pattern, x: Tensor, out: Tensor) -> None:
    """Compute out (rows, n) = K x (cols, n) for any strides.

    Sums of half precision are float32. Complex elements are pairs of real ones.
    """
    import torch

    from .factor_kernels import gather_factor

    n, tile = x.shape[1], gather_tile(pattern, out.stride(1) != 1, x.itemsize)
    parts = 2 if x.is_complex() else 1
    given = [torch.view_as_real(one) if parts == 2 else one for one in (x, weights, out)]
    strides = (parts * stride for stride in (*x.stride(), *out.stride()))
    starter(gather_factor, (tile.programs(pattern, n),), x)(
        *(*given, n, pattern.b, pattern.c, *strides),
        **{"D": pattern.d, "DOUBLE": x.dtype in (torch.float64, torch.complex128), "PARTS": parts},
        **{"N": tile.n, "P": tile.p, "J": tile.j},
        num_warps=tile.warps,
    )


def factor_by_factor(
    multiply: FactorProduct, patterns: Sequence[Pattern], factors: Sequence[Any], x: Tensor, out: Tensor
) -> None:
    """Compute out (rows, n) = K1 ... KL x, right-most factor first; results between factors are batch-last."""
    for place in reversed(range(len(patterns))):
        target = empty_result(x, patterns[place].rows, first=False) if place else out
        multiply(factors[place], patterns[place], x, target)
        x = target

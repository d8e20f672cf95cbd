"""Tiles of the Triton kernels of a factor, their multiplications, and the limit of a grid."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ..precision import ACCURATE
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


def tile_choices(dtype: str, last: bool = False) -> int:
    """Return the number of choices of a tile for a dtype.

    `last`: X and the result are batch-last, so that a tile of one diagonal reads and writes contiguous rows for any d.
    """
    return sum(map(len, TILES[dtype])) if last else max(map(len, TILES[dtype]))


@lru_cache(maxsize=1024)
def tile_of(dtype: str, pattern: Pattern, choice: int) -> FactorTile:
    """Return the tile of a choice, fitted to a pattern; for d > 1 those of one diagonal follow those of several."""
    single, several = TILES[dtype]
    tiles = (*several, *single) if pattern.d > 1 else single
    return tiles[min(choice, len(tiles) - 1)].fitted(pattern)


def tiled_reason(patterns: Sequence[Pattern], n: int, dtype: str, choice: int) -> str | None:
    """Return the reason why the Triton kernel does not support these patterns, or None."""
    if dtype not in TILES:
        return f"the kernel's tiles are of real numbers, not {dtype}; choose the strategy strided"
    return grid_reason(patterns, lambda one: tile_of(dtype, one, choice).programs(one, n))


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

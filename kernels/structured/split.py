"""Products of float32 by three products of float16 halves: X in gathered blocks, tensor cores, results scaled back.

Columns of X and rows of the blocks are scaled by powers of two into the range of float16, then x = high + low: errors
are 2^-22 of an entry and 2^-39 of the largest one of its column of X, or row of a block. Entries below 2^-17 of
the largest lose digits; a column with an infinite or NaN entry may become NaN as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..cuda.float16_pairs import MOST_SHIFT, TOP, largest_of, multiply_pairs, pairs_of, pitch_of, stack_of_pairs
from ..cuda.float16_pairs import TILE as LARGE
from ..cuda.launch import starter
from ..cuda.tiles import Tile
from ..precision import ACCURATE
from .blocks import Tensor
from .pattern import Pattern
from .tiles import grid_reason

SMALL = Tile(64, 128, 64, 4, 3)

TILES: tuple[tuple[Tile, float], ...] = ((LARGE, 176e12), (SMALL, 133e12))
"""Tiles of a product of halves and their operations per second, the three products counted as one: those of a dense
product (206e12 and 156e12 at 8192 x 8192 x 8192 on one H200), less 15%, by which 20 Kronecker-sparse products took
longer in the median (`lcma bench ks --dtype tf32x3`, batch 25088)."""

SPLIT_TILE, UNSCALE_TILE = (64, 64, 4), (32, 64, 4)
"""Features and columns of a tile of the kernels before and after the product, and warps of a program."""


@dataclass(frozen=True)
class SplitFactor:
    """The parameters of a factor in halves (2 a d, b, c), and the exponents of their rows (a d b)."""

    stack: Tensor
    shifts: Tensor

    @property
    def nbytes(self) -> int:
        """Bytes of both."""
        return int(self.stack.nbytes + self.shifts.nbytes)


def split_factor(weights: Tensor, pattern: Pattern) -> SplitFactor:
    """Return the parameters (a, d, b, c) in float16 halves."""
    found = pairs_of(weights.reshape(-1, pattern.c), 0)
    blocks = found.stack.unflatten(1, (pattern.a * pattern.d, pattern.b)).flatten(0, 1)
    return SplitFactor(blocks, found.shifts)


def split_factor_bytes(pattern: Pattern) -> int:
    """Return the bytes of `split_factor`."""
    return 4 * pattern.rows * (pitch_of(pattern.c) + 1)


def split_tile(pattern: Pattern) -> Tile:
    """Return the tile that multiplies blocks of a pattern soonest, padding included."""
    return min(TILES, key=lambda known: split_seconds(pattern, 1, *known))[0]


def split_seconds(pattern: Pattern, n: int, tile: Tile, rate: float) -> float:
    """Return the seconds of the multiplications by one tile at a rate, including the padding and one step more."""
    down, steps = -(-pattern.b // tile.m), -(-pattern.c // tile.k) + 1
    return 2.0 * pattern.a * pattern.d * down * tile.m * steps * tile.k * n / rate


def split_reason(patterns: Sequence[Pattern], n: int, arithmetic: str) -> str | None:
    """Return the reason why these patterns are not multiplied by halves, or None."""
    if arithmetic != ACCURATE:
        return f"halves of float16 are for the precision {ACCURATE}, not for {arithmetic}"

    def programs(one: Pattern) -> int:
        tile = split_tile(one)
        return one.a * one.d * -(-one.b // tile.m) * -(-n // tile.n)

    return grid_reason(patterns, programs)


def multiply_split(factor: SplitFactor, pattern: Pattern, x: Tensor, out: Tensor) -> None:
    """Compute out (rows, n) = K x (cols, n) for any strides."""
    import torch

    from .movement_kernels import split_gathered, unscale_scattered

    a, b, c, d = pattern.sizes
    n, largest = x.shape[1], largest_of(x, 1)
    stack = stack_of_pairs(x, a * d, c, n)
    shifts = torch.empty(n, dtype=torch.int32, device=x.device)
    features, columns, warps = SPLIT_TILE
    starter(split_gathered, (-(-len(x) // features) * -(-n // columns),), x)(
        *(x, largest, shifts, stack[: a * d], stack[a * d :], *x.shape, *x.stride(), stack.stride(1), len(largest), c),
        **{"D": d, "TOP": TOP, "MOST": MOST_SHIFT, "F": features, "N": columns},
        num_warps=warps,
    )
    product = x.new_empty((a * d, b, n))
    multiply_pairs(factor.stack, stack, product, None, split_tile(pattern))
    features, columns, warps = UNSCALE_TILE
    starter(unscale_scattered, (-(-len(out) // features) * -(-n // columns),), x)(
        *(product, factor.shifts, shifts, out, *out.shape, *out.stride(), b),
        **{"D": d, "F": features, "N": columns},
        num_warps=warps,
    )

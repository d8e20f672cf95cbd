"""Products by factors with small blocks, by a gathering Triton kernel without tensor cores and their padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..cuda.launch import starter
from .pattern import Pattern
from .tiles import MOST_PROGRAMS, power_above, triton_reason

Tensor = Any

LARGEST_BLOCK = 32
"""Maximum side of a block that is gathered: larger ones are compute-bound, and faster by tiles."""

ELEMENTS, ROWS = 4096, 16
"""Words of 4 bytes of Y that a program of 128 threads computes, and the maximum number of rows p among its elements."""


@dataclass(frozen=True)
class GatherTile:
    """The tile of one program: columns of the batch, rows p, diagonals j."""

    n: int
    p: int
    j: int

    def programs(self, pattern: Pattern, n: int) -> int:
        """Return the number of programs of the grid for n columns."""
        return pattern.a * -(-pattern.b // self.p) * -(-pattern.d // self.j) * -(-n // self.n)


def gather_tile(pattern: Pattern, first: bool, words: int) -> GatherTile:
    """Return the tile of a pattern: long in the contiguous dimension, diagonals (batch-first) or columns (batch-last).

    `words` is the number of words of an element's sum.
    """
    p = min(ROWS, power_above(pattern.b))
    rest = max(16, ELEMENTS // (p * words))
    j = min(power_above(pattern.d), rest // 4 if first else max(1, rest // 128))
    return GatherTile(rest // j, p, j)


def gather_reason(patterns: Sequence[Pattern], n: int, dtype: str) -> str | None:
    """Return the reason why the kernel does not support these patterns, or None."""
    if reason := triton_reason():
        return reason
    for one in patterns:
        if max(one.b, one.c) > LARGEST_BLOCK:
            return f"blocks of {one} are larger than the {LARGEST_BLOCK} x {LARGEST_BLOCK} that are gathered"
        if gather_tile(one, True, words_of(dtype)).programs(one, n) > MOST_PROGRAMS:
            return f"{one} has more blocks than the kernel's grid takes; choose the strategy strided"
    return None


def words_of(dtype: str) -> int:
    """Return the words of 4 bytes of a sum of this dtype."""
    return {"float64": 2, "complex64": 2, "complex128": 4}.get(dtype, 1)


def multiply_gathered(weights: Tensor, pattern: Pattern, x: Tensor, out: Tensor) -> None:
    """Compute out (rows, n) = K x (cols, n) for any strides; sums of half precision are computed in float32."""
    import torch

    from .gather_kernel import gather_factor

    first = out.stride(1) != 1
    tile = gather_tile(pattern, first, words_of(str(x.dtype).removeprefix("torch.")))
    parts = 2 if x.is_complex() else 1
    given, kernel, wanted = (torch.view_as_real(one) if parts == 2 else one for one in (x, weights, out))
    starter(gather_factor, (tile.programs(pattern, x.shape[1]),), x)(
        given,
        kernel,
        wanted,
        x.shape[1],
        pattern.b,
        pattern.c,
        *(parts * stride for stride in (*x.stride(), *out.stride())),
        D=pattern.d,
        DOUBLE=x.dtype in (torch.float64, torch.complex128),
        PARTS=parts,
        N=tile.n,
        P=tile.p,
        J=tile.j,
        num_warps=4,
    )

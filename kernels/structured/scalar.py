"""Products by factors with small blocks on scalar units, by a Triton kernel: tensor cores would pad the blocks."""

from __future__ import annotations

from collections.abc import Sequence

from ..cuda.dtypes import itemsize
from ..cuda.launch import starter
from .blocks import Tensor
from .pattern import Pattern
from .tiles import FactorTile, grid_reason, power_above, triton_reason

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


def multiply_small(weights: Tensor, pattern: Pattern, x: Tensor, out: Tensor) -> None:
    """Compute out (rows, n) = K x (cols, n) for any strides.

    Sums of half precision are float32. Complex elements are pairs of real ones.
    """
    import torch

    from .scalar_kernel import gather_factor

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

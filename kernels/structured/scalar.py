"""Products by factors with small blocks on scalar units: a Triton kernel a factor, or a pair of neighbours.

Tensor cores would pad small blocks. The kernel of a pair keeps the result between the two factors on chip.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..cuda.dtypes import itemsize
from ..cuda.launch import starter
from .blocks import Tensor, empty_result
from .chain import KroneckerSparse
from .pattern import Pattern
from .tiles import MOST_PROGRAMS, FactorTile, grid_reason, power_above, triton_reason
from .views import multiply_strided

LARGEST_BLOCK = 32
"""Maximum side of a block that is gathered: larger ones are compute-bound, and faster by tiles."""

ELEMENTS, ROWS = 4096, 16
"""Words of 4 bytes of Y that a program of 128 threads computes, and the maximum number of rows p among its elements."""

Launched = tuple[tuple[int, ...], bool]
"""The places of the factors of a launch, and whether our kernels run it; the others are multiplied on views."""

MOST_HELD = 256
"""Maximum number of interdependent elements of an intermediate result, which are stored for every column."""

PAIR_ELEMENTS = 8192
"""Words of 4 bytes of the intermediate result that a program of 256 threads stores."""


def _long(words: int, item: int, d: int, first: bool) -> tuple[int, int]:
    """Return columns and diagonals, more of those that are contiguous: diagonals (`first`: batch-first), or columns.

    They fill so many words of 4 bytes by sums of elements of `item` bytes, of one word at least.
    """
    rest = max(16, words // max(1, item // 4))
    j = min(power_above(d), rest // 4 if first else max(1, rest // 128))
    return rest // j, j


def gather_tile(pattern: Pattern, first: bool, item: int) -> FactorTile:
    """Return the tile of a pattern for elements of so many bytes."""
    p = min(ROWS, power_above(pattern.b))
    n, j = _long(ELEMENTS // p, item, pattern.d, first)
    return FactorTile(n, p, 1, j, 4, 0)


def pair_tile(pair: Sequence[Pattern], first: bool, item: int) -> FactorTile:
    """Return the tile of a pair: columns of the batch, all blocks q of K2 and all rows p of each, diagonals j."""
    q, p = power_above(pair[0].c), power_above(pair[1].b)
    n, j = _long(PAIR_ELEMENTS // (q * p), item, pair[1].d, first)
    return FactorTile(n, p, q, j, 8, 0)


def pair_programs(pair: Sequence[Pattern], n: int, tile: FactorTile) -> int:
    """Return the number of programs of the grid of a pair for n columns."""
    return pair[0].a * -(-pair[1].d // tile.j) * -(-n // tile.n)


def gather_reason(patterns: Sequence[Pattern], n: int, dtype: str) -> str | None:
    """Return the reason why the kernel does not support these patterns, or None."""
    large = next((one for one in patterns if max(one.b, one.c) > LARGEST_BLOCK), None)
    if large is not None and triton_reason() is None:
        return f"blocks of {large} are larger than the {LARGEST_BLOCK} x {LARGEST_BLOCK} that are gathered"
    return grid_reason(patterns, lambda one: gather_tile(one, True, itemsize(dtype)).programs(one, n))


def is_fused(left: Pattern, right: Pattern, n: int, dtype: str) -> bool:
    """Return whether K1 K2 runs as one kernel: chainable, and interdependent elements fit on chip."""
    chains = right.a == left.a * left.c and left.d == right.b * right.d
    if not chains or power_above(left.c) * power_above(right.b) > MOST_HELD:
        return False
    if max(left.b, right.c) > LARGEST_BLOCK:
        return False
    pair = left, right
    tiles = (pair_tile(pair, first, itemsize(dtype)) for first in (False, True))
    return max(pair_programs(pair, n, tile) for tile in tiles) <= MOST_PROGRAMS


def launches_of(patterns: Sequence[Pattern], n: int, dtype: str, pairs: bool) -> tuple[Launched, ...]:
    """Return the launches of a chain: single factors, or with `pairs` neighbours from the right, and those between."""
    found: list[Launched] = []
    place = len(patterns) - 1
    while place >= 0:
        paired = pairs and place > 0 and is_fused(patterns[place - 1], patterns[place], n, dtype)
        places = (place - 1, place) if paired else (place,)
        found.append((places, paired or gather_reason((patterns[place],), n, dtype) is None))
        place -= len(places)
    return tuple(found)


def fused_reason(patterns: Sequence[Pattern], n: int, dtype: str) -> str | None:
    """Return the reason why no neighbours of a chain are fused, or None."""
    if reason := triton_reason():
        return reason
    if all(len(places) == 1 for places, _ in launches_of(patterns, n, dtype, True)):
        return f"no two neighbours chain with rank 1 and hold at most {MOST_HELD} elements for a column"
    return None


def multiply_small(weights: Sequence[Tensor], patterns: Sequence[Pattern], x: Tensor, out: Tensor) -> None:
    """Compute out = K x or K1 K2 x for any strides, by the kernel of one factor or of a pair.

    Sums and intermediate results of half precision are float32. Complex elements are pairs of real ones.
    """
    import torch

    from .scalar_kernel import gather_factor, multiply_pair

    n, first, last, paired = x.shape[1], out.stride(1) != 1, patterns[-1], len(patterns) == 2
    tile = pair_tile(patterns, first, x.itemsize) if paired else gather_tile(last, first, x.itemsize)
    programs = pair_programs(patterns, n, tile) if paired else tile.programs(last, n)
    parts = 2 if x.is_complex() else 1
    given = [torch.view_as_real(one) if parts == 2 else one for one in (x, *weights, out)]
    blocks = [side for one in patterns for side in (one.b, one.c)]
    starter(multiply_pair if paired else gather_factor, (programs,), x)(
        *(*given, n, *blocks, *(parts * stride for stride in (*x.stride(), *out.stride()))),
        **{"DOUBLE": x.dtype in (torch.float64, torch.complex128), "PARTS": parts},
        **{"D": last.d, "N": tile.n, "P": tile.p, "J": tile.j, **({"Q": tile.q} if paired else {})},
        num_warps=tile.warps,
    )


def multiply_launches(
    launches: Sequence[Launched], patterns: Sequence[Pattern], factors: Sequence[Tensor], x: Tensor, out: Tensor
) -> None:
    """Compute out (rows, n) = K1 ... KL x (cols, n) by `launches_of`; between them the batch is last."""
    for places, is_ours in launches:
        some, weights = [patterns[place] for place in places], [factors[place] for place in places]
        target = empty_result(x, some[0].rows, first=False) if places[0] else out
        if is_ours:
            multiply_small(weights, some, x, target)
        else:
            multiply_strided(KroneckerSparse(tuple(some)), weights, x, target)
        x = target

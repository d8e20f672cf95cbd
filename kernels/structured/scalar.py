"""Products by factors with small blocks on scalar units: a Triton kernel a factor, or a pair of neighbours.

Tensor cores would pad small blocks. The kernel of a pair keeps the result between the two factors on chip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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

MOST_HELD = 256
"""Maximum number of interdependent elements of an intermediate result, which are stored for every column."""

PAIR_ELEMENTS = 8192
"""Words of 4 bytes of the intermediate result that a program of 256 threads stores."""


def _long(elements: int, d: int, first: bool) -> tuple[int, int]:
    """Return columns and diagonals, more of those that are contiguous: diagonals (`first`: batch-first), or columns."""
    rest = max(16, elements)
    j = min(power_above(d), rest // 4 if first else max(1, rest // 128))
    return rest // j, j


def gather_tile(pattern: Pattern, first: bool, words: int) -> FactorTile:
    """Return the tile of a pattern; `words` is the number of words of an element's sum."""
    p = min(ROWS, power_above(pattern.b))
    n, j = _long(ELEMENTS // (p * words), pattern.d, first)
    return FactorTile(n, p, 1, j, 4, 0)


def pair_tile(pair: tuple[Pattern, Pattern], first: bool, words: int) -> FactorTile:
    """Return the tile of a pair: columns of the batch, all blocks q of K2 and all rows p of each, diagonals j."""
    q, p = power_above(pair[0].c), power_above(pair[1].b)
    n, j = _long(PAIR_ELEMENTS // (q * p * words), pair[1].d, first)
    return FactorTile(n, p, q, j, 8, 0)


def pair_programs(pair: tuple[Pattern, Pattern], n: int, tile: FactorTile) -> int:
    """Return the number of programs of the grid of a pair for n columns."""
    return pair[0].a * -(-pair[1].d // tile.j) * -(-n // tile.n)


def words_of(dtype: str) -> int:
    """Return the words of 4 bytes of a sum of this dtype."""
    return {"float64": 2, "complex64": 2, "complex128": 4}.get(dtype, 1)


def gather_reason(patterns: Sequence[Pattern], n: int, dtype: str) -> str | None:
    """Return the reason why the kernel does not support these patterns, or None."""
    large = next((one for one in patterns if max(one.b, one.c) > LARGEST_BLOCK), None)
    if large is not None and triton_reason() is None:
        return f"blocks of {large} are larger than the {LARGEST_BLOCK} x {LARGEST_BLOCK} that are gathered"
    return grid_reason(patterns, lambda one: gather_tile(one, True, words_of(dtype)).programs(one, n))


def is_fused(left: Pattern, right: Pattern, n: int, dtype: str) -> bool:
    """Return whether K1 K2 runs as one kernel: chainable, and interdependent elements fit on chip."""
    chains = right.a == left.a * left.c and left.d == right.b * right.d
    if not chains or power_above(left.c) * power_above(right.b) > MOST_HELD:
        return False
    if max(left.b, right.c) > LARGEST_BLOCK:
        return False
    pair = left, right
    tiles = (pair_tile(pair, first, words_of(dtype)) for first in (False, True))
    return max(pair_programs(pair, n, tile) for tile in tiles) <= MOST_PROGRAMS


def fused_places(patterns: Sequence[Pattern], n: int, dtype: str) -> tuple[tuple[int, ...], ...]:
    """Return the factors of every launch, right-most first: pairs from the right, and single factors between them."""
    found, place = [], len(patterns) - 1
    while place >= 0:
        paired = place > 0 and is_fused(patterns[place - 1], patterns[place], n, dtype)
        found.append((place - 1, place) if paired else (place,))
        place -= len(found[-1])
    return tuple(found)


def fused_reason(patterns: Sequence[Pattern], n: int, dtype: str) -> str | None:
    """Return the reason why no neighbours of a chain are fused, or None."""
    if reason := triton_reason():
        return reason
    if all(len(places) == 1 for places in fused_places(patterns, n, dtype)):
        return f"no two neighbours chain with rank 1 and hold at most {MOST_HELD} elements for a column"
    return None


def multiply_gathered(weights: Tensor, pattern: Pattern, x: Tensor, out: Tensor) -> None:
    """Compute out (rows, n) = K x (cols, n) for any strides; sums of half precision are computed in float32."""
    from .scalar_kernel import gather_factor

    tile = gather_tile(pattern, out.stride(1) != 1, words_of(str(x.dtype).removeprefix("torch.")))
    programs, sizes = tile.programs(pattern, x.shape[1]), {"D": pattern.d, "N": tile.n, "P": tile.p, "J": tile.j}
    _launch(gather_factor, programs, (x, weights, out), (pattern.b, pattern.c), tile.warps, **sizes)


def multiply_fused(weights: tuple[Tensor, Tensor], pair: tuple[Pattern, Pattern], x: Tensor, out: Tensor) -> None:
    """Compute out = K1 K2 x for any strides; intermediate results of half precision are stored in float32."""
    from .scalar_kernel import multiply_pair

    (_, b1, c1, _), (_, b2, c2, d) = (one.sizes for one in pair)
    tile = pair_tile(pair, out.stride(1) != 1, words_of(str(x.dtype).removeprefix("torch.")))
    sizes = {"D": d, "N": tile.n, "Q": tile.q, "P": tile.p, "J": tile.j}
    operands = x, *weights, out
    _launch(multiply_pair, pair_programs(pair, x.shape[1], tile), operands, (b1, c1, b2, c2), tile.warps, **sizes)


def _launch(
    kernel: Any, programs: int, operands: Sequence[Tensor], blocks: Sequence[int], warps: int, **sizes: int
) -> None:
    """Launch a kernel on x, the parameters, and y; complex elements are pairs of real ones."""
    import torch

    x, out = operands[0], operands[-1]
    parts = 2 if x.is_complex() else 1
    given = [torch.view_as_real(one) if parts == 2 else one for one in operands]
    starter(kernel, (programs,), x)(
        *(*given, x.shape[1], *blocks, *(parts * stride for stride in (*x.stride(), *out.stride()))),
        **{"DOUBLE": x.dtype in (torch.float64, torch.complex128), "PARTS": parts, **sizes},
        num_warps=warps,
    )


def multiply_in_pairs(
    patterns: Sequence[Pattern], dtype: str, factors: Sequence[Tensor], x: Tensor, out: Tensor
) -> None:
    """Compute out (rows, n) = K1 ... KL x (cols, n) by the launches of `fused_places`; between them the batch is last.

    Unfused factors are gathered, or multiplied on views.
    """
    n = x.shape[1]
    for places in fused_places(patterns, n, dtype):
        head = patterns[places[0]]
        target = out if places[0] == 0 else empty_result(x, head.rows, first=False)
        if len(places) == 2:
            weights = factors[places[0]], factors[places[1]]
            multiply_fused(weights, (head, patterns[places[1]]), x, target)
        elif gather_reason((head,), n, dtype) is None:
            multiply_gathered(factors[places[0]], head, x, target)
        else:
            multiply_strided(KroneckerSparse((head,)), [factors[places[0]]], x, target)
        x = target

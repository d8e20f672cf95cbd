"""Predicted stages of int8 products on a GPU.

Rates are those of the int8 products of the exact family, measured on an H200 at 32768 and 65536, as multiples of the
best rate of bfloat16; products that write int32, and all sums, are not measured.
"""

from __future__ import annotations

from ..cuda.cost_model import CudaCostModel
from ..cuda.int8 import SMALL_TILE, TILE, vendor_sizes
from ..cuda.int8_executor import EVERY
from ..cuda.int8_level import Int8TensorLevel
from ..planning.strategy import Stage
from ..request import Request
from .scheme_costs import STAGES

VENDOR_OVER_HALF, KERNEL_OVER_HALF = 1.52, 1.83
"""Rates over the best of bfloat16: torch's `_int_mm` reached 1.08e15 operations per second on an H200, our kernel with
the parity in its epilogue 1.30e15."""

VENDOR_TILE = (128, 256)
"""Assumed rows and columns of a tile of torch's `_int_mm`."""

WIDE = 4
"""Bytes of an element of C."""


def vendor_stages(request: Request, costs: CudaCostModel) -> list[Stage]:
    """Return the stages of torch's `_int_mm`, with the copies that its rules need."""
    (m, k, n), items = request.shape, request.items
    rows, inner, cols = vendor_sizes(m, k, n)
    stages = [*_checked(request, costs)]
    copied = (m * k + rows * inner) * ((rows, inner) != (m, k)) + (k * n + inner * cols) * ((inner, cols) != (k, n))
    copied += WIDE * (m * n + rows * cols) * ((rows, cols) != (m, n))
    if copied:
        moved = float(items * copied)
        stages.append(Stage("Pad A, B and C", 0.0, moved, float(costs.combine(moved))))
    moved = float(m * k + k * n + WIDE * m * n)
    seconds = items * float(costs.tiled(rows, inner, cols, VENDOR_TILE, VENDOR_OVER_HALF, moved))
    name = f"{items} products {m}x{k}x{n} in int8"
    return [*stages, Stage(name, float(request.flops), items * moved, seconds, request.shape)]


def level_stages(level: Int8TensorLevel, request: Request, costs: CudaCostModel) -> list[Stage]:
    """Return the stages of our kernel, with or without a scheme; a static B is combined once, which is not counted.

    Without one A is copied if its rows are no whole segments, and B if it is not stored by columns.
    """
    (m, k, n), items = request.shape, request.items
    bm, bk, bn = level.blocks(m, k, n)
    rank = level.rank
    stages = [*_checked(request, costs)]
    moves = (
        (STAGES[0], k == bk and level.plain, m * k + rank * bm * bk),
        (STAGES[1], request.static == "B", k * n + rank * bk * bn),
    )
    for name, spared, each in moves:
        if not spared:
            moved = float(items * each)
            shown = f"Copy {name[-1]}" if level.plain else name
            stages.append(Stage(shown, 0.0, moved, float(costs.combine(moved))))
    moved = float(rank * (bm * bk + bk * bn + WIDE * bm * bn))
    tile = SMALL_TILE if bm <= SMALL_TILE.m else TILE
    # All products are one launch, whose tiles follow each other.
    rows = rank * -(-bm // tile.m) * tile.m
    seconds = items * float(costs.tiled(rows, bk, bn, (tile.m, tile.n), KERNEL_OVER_HALF, moved))
    name = f"{items * rank} products {bm}x{bk}x{bn} in int8"
    stages.append(Stage(name, 2.0 * items * rank * bm * bk * bn, items * moved, seconds, (bm, bk, bn)))
    if not level.plain:
        moved = float(items * WIDE * (rank * bm * bn + m * n))
        stages.append(Stage(STAGES[2], 0.0, moved, float(costs.combine(moved))))
    return stages


def _checked(request: Request, costs: CudaCostModel) -> list[Stage]:
    """Return the comparison of the entries with the stated magnitude, if they could exceed it."""
    if request.max_abs is None or request.max_abs >= EVERY:
        return []
    m, k, n = request.shape
    moved = float(request.items_a * m * k + (0 if request.static == "B" else request.items_b * k * n))
    return [Stage("Check the range", 0.0, moved, float(costs.combine(moved)))]

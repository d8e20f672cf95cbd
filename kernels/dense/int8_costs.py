"""Predicted stages of int8 products on a GPU.

All constants are of one H200, from the rows of `lcma bench gpu --device cuda --rows 'int8*'`: cubes of 2048 to 16384,
and 16, 256 and 4096 rows by 4096 x 11008. Rates are multiples of the best rate of bfloat16.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..cuda.cost_model import START, CudaCostModel
from ..cuda.int8 import SMALL_TILE, TILE, vendor_sizes
from ..cuda.int8_operands import inner_size
from ..cuda.packed_product import EVERY
from ..planning.strategy import Stage
from ..request import Layout, Request


@dataclass(frozen=True)
class TiledRate:
    """How a kernel multiplies: whole waves of tiles of C (rows, cols) at a rate over that of bfloat16.

    `latency` are the seconds of every wave in which nothing is multiplied.
    """

    tile: tuple[int, int]
    over_half: float
    latency: float

    def seconds(self, costs: CudaCostModel, m: int, k: int, n: int, moved: float) -> float:
        """Return the predicted seconds of a product that moves so many bytes."""
        return float(costs.tiled(m, k, n, self.tile, self.over_half, moved, self.latency))


VENDOR = {True: TiledRate((128, 256), 1.355, 3.4e-6), False: TiledRate((128, 128), 0.181, START)}
"""torch's `_int_mm` of a B stored by columns (True), and of any other, which takes 3 to 7 times as long.

The copy to columns before it is priced as that before our kernel. Measured later, on one host, it added 13 us to the
27 us of 2048 x 2048 x 2048, where this price adds 28 us.
"""

KERNEL, KERNEL_LATENCY = 1.626, 3.5e-6
"""Rate and latency of a wave of our kernel."""

VENDOR_HOST, HOST, COPY_HOST = 27e-6, 73e-6, 28e-6
"""Seconds of the host for a call of `_int_mm` and of our executor, and for each operand that is copied;
no product is faster."""

PREPARED_HOST = 11e-6
"""Seconds of the host that a prepared B saves."""

CHECK, CHECKED_OPERAND, CHECK_RATE = 72e-6, 11e-6, 2.9e12
"""Seconds in which the host waits for the largest entries, those for each operand, and bytes per second."""

WIDE = 4
"""Bytes of an element of C."""


def vendor_stages(request: Request, costs: CudaCostModel, copies: bool | None = None) -> list[Stage]:
    """Return the stages of torch's `_int_mm`, with the copies that its rules need.

    With `copies` a B that is not stored by columns is copied to columns first; None: where that is the cheaper. A
    static B is copied once, which is not counted.
    """
    if copies is None:
        copies = copies_b(request, costs)
    (m, k, n), items = request.shape, request.items
    rows, inner, cols = vendor_sizes(m, k, n)
    by_columns = request.layouts[1] is Layout.COLUMNS
    copied_b = (inner, cols) != (k, n) or (copies and not by_columns)
    stages = []
    if copied_b and request.static != "B":
        moved = float(items * (k * n + inner * cols))
        stages.append(Stage("Copy B", 0.0, moved, float(costs.combine(moved))))
    host = VENDOR_HOST + COPY_HOST * len(stages)
    copied = (m * k + rows * inner) * ((rows, inner) != (m, k)) + WIDE * (m * n + rows * cols) * (
        (rows, cols) != (m, n)
    )
    if copied:
        moved = float(items * copied)
        stages.append(Stage("Pad A and C", 0.0, moved, float(costs.combine(moved))))
    moved = float(m * k + k * n + WIDE * m * n)
    seconds = items * VENDOR[by_columns or copied_b].seconds(costs, rows, inner, cols, moved)
    name = f"{items} products {m}x{k}x{n} in int8"
    stages.append(Stage(name, float(request.flops), items * moved, seconds, request.shape))
    return [*_checked(request), *stages, *_waits(stages, items * host)]


def copies_b(request: Request, costs: CudaCostModel) -> bool:
    """Return whether torch's `_int_mm` of a copy of B to columns is predicted to take no longer, the copy included.

    A copy that `max_workspace` does not permit is not made.
    """
    most = request.max_workspace
    if most is not None and request.static != "B" and request.k * request.n > most:
        return False
    copied, in_place = (
        sum(stage.seconds or 0.0 for stage in vendor_stages(request, costs, copies)) for copies in (True, False)
    )
    return not in_place < copied


def vendor_workspace(request: Request, costs: CudaCostModel) -> int:
    """Return the bytes of the copies that `vendor_stages` are of; those of a static B are not counted."""
    m, k, n = request.shape
    rows, inner, cols = vendor_sizes(m, k, n)
    copied_b = (inner, cols) != (k, n) or (request.layouts[1] is not Layout.COLUMNS and copies_b(request, costs))
    total = inner * cols * (copied_b and request.static != "B")
    return total + rows * inner * ((rows, inner) != (m, k)) + WIDE * rows * cols * ((rows, cols) != (m, n))


def kernel_stages(request: Request, costs: CudaCostModel) -> list[Stage]:
    """Return the stages of our kernel; a static B is copied once, which is not counted.

    A is copied if its rows are no whole segments, and B if it is not stored by columns of whole segments.
    """
    (m, k, n), items = request.shape, request.items
    inner, static = inner_size(request.k), request.static == "B"
    moves = (
        ("Copy A", k == inner, m * (k + inner)),
        ("Copy B", static or (k == inner and request.layouts[1] is Layout.COLUMNS), n * (k + inner)),
    )
    stages = []
    for name, spared, each in moves:
        if not spared:
            moved = float(items * each)
            stages.append(Stage(name, 0.0, moved, float(costs.combine(moved))))
    host = HOST - PREPARED_HOST * static + COPY_HOST * len(stages)
    moved = float((m + n) * inner + WIDE * m * n)
    tile = SMALL_TILE if m <= SMALL_TILE.m else TILE
    rate = TiledRate((tile.m, tile.n), KERNEL, KERNEL_LATENCY)
    # Whole tiles of rows: the kernel computes them whatever m is.
    seconds = items * rate.seconds(costs, -(-m // tile.m) * tile.m, inner, n, moved)
    name = f"{items} products {m}x{inner}x{n} in int8"
    stages.append(Stage(name, 2.0 * items * m * inner * n, items * moved, seconds, (m, inner, n)))
    return [*_checked(request), *stages, *_waits(stages, items * host)]


def _waits(stages: list[Stage], host: float) -> list[Stage]:
    """Return the time in which the GPU waits for the host, if these stages take less than the host."""
    short = host - sum(stage.seconds or 0.0 for stage in stages)
    return [Stage("Wait for the host", 0.0, 0.0, short)] if short > 0 else []


def _checked(request: Request) -> list[Stage]:
    """Return the comparison of the entries with the stated magnitude, if they could exceed it."""
    if request.max_abs is None or request.max_abs >= EVERY:
        return []
    m, k, n = request.shape
    operands = 1 if request.static == "B" else 2
    moved = float(request.items_a * m * k + (operands - 1) * request.items_b * k * n)
    return [Stage("Check the range", 0.0, moved, CHECK + operands * CHECKED_OPERAND + moved / CHECK_RATE)]

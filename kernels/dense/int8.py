"""The strategy that multiplies int8 into int32 by our kernel on a GPU, and the predicted stages of int8 products."""

from __future__ import annotations

from dataclasses import dataclass

from ..cuda.cost_model import CudaCostModel
from ..cuda.int8 import BY_KERNEL, SMALL_TILE, TILE, inner_size, vendor_sizes
from ..cuda.packed_product import EVERY, PackedArithmetic
from ..measured import measured
from ..overflow import range_reason
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Stage
from ..request import INT8, Layout, Request
from .packed import PackedStrategy, pass_over

NAME = "int8"

PRICES = measured("dense.int8")

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
        stages.append(pass_over("Copy B", float(items * (k * n + inner * cols)), costs))
    host = PRICES.vendor_host + PRICES.copy_host * len(stages)
    copied = (m * k + rows * inner) * ((rows, inner) != (m, k)) + WIDE * (m * n + rows * cols) * (
        (rows, cols) != (m, n)
    )
    if copied:
        stages.append(pass_over("Pad A and C", float(items * copied), costs))
    moved = float(m * k + k * n + WIDE * m * n)
    tile, rate, latency = PRICES.by_columns if by_columns or copied_b else PRICES.by_rows
    seconds = items * float(costs.tiled(rows, inner, cols, tile, rate, moved, latency))
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
            stages.append(pass_over(name, float(items * each), costs))
    host = PRICES.host - PRICES.prepared_host * static + PRICES.copy_host * len(stages)
    moved = float((m + n) * inner + WIDE * m * n)
    (rate, latency), tile = PRICES.kernel, SMALL_TILE if m <= SMALL_TILE.m else TILE
    # Whole tiles of rows: the kernel computes them whatever m is.
    rows = -(-m // tile.m) * tile.m
    seconds = items * float(costs.tiled(rows, inner, n, (tile.m, tile.n), rate, moved, latency))
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
    seconds = PRICES.check + operands * PRICES.checked_operand + moved / PRICES.check_rate
    return [Stage("Check the range", 0.0, moved, seconds)]


@dataclass(frozen=True)
class CudaInt8(PackedStrategy):
    """Our kernel of int8 tensor cores, which takes any sizes; B is stored by columns first, if it is not."""

    name: str = NAME

    def is_for(self, request: Request) -> bool:
        return request.dtype == INT8

    def reason(self, request: Request) -> str | None:
        if request.dtype != INT8:
            return f"the strategy {NAME} is for the dtype {INT8}, not for {request.dtype}"
        return range_reason(None, request)

    def arithmetic(self, candidate: Candidate) -> PackedArithmetic:
        return BY_KERNEL

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        return kernel_stages(request, CudaCostModel.of(machine))

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: an upper bound, as operands that can be read in place are not copied."""
        m, k, n = request.shape
        return 0 if request.is_empty else (m + n) * (inner_size(k) + k)

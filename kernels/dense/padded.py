"""The strategy that pads operands for the vendor's product on a GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..cuda.cost_model import UNALIGNED, CudaCostModel, instant_reason, row_multiple
from ..cuda.level import PaddedProduct, padded_product
from ..cuda.level_product import level_executor, level_workspace, pieces_of
from ..cuda.shape import SEGMENT
from ..measured import measured
from ..planning.machine import Machine
from ..planning.strategy import BaseStrategy, Candidate, Executor, Proposal, Stage
from ..request import Request

FAMILY, NAME = "dense", "padded"

PRICES = measured("dense.padded")


@dataclass(frozen=True)
class CudaPadded(BaseStrategy):
    """The vendor's product with k and n rounded up to whole segments of 16 bytes, if they are not."""

    name: str = NAME
    family: str = FAMILY

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        candidate = Candidate(FAMILY, NAME)
        if self.can_run(candidate, request, machine):
            return []
        costs = CudaCostModel.of(machine)
        vendor = float(costs.gemm(request.arithmetic, *request.shape, request.items))
        return instant_reason(request, vendor) or [self.proposal(candidate, request, machine)]

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        if request.arithmetic not in UNALIGNED:
            return f"the vendor's {request.arithmetic} products take any sizes at their full rate"
        if PaddedProduct.padded(request.k, request.n, request.itemsize) == (request.k, request.n):
            return f"k and n are whole segments of {SEGMENT} bytes: there is nothing to pad"
        if pieces_of(request, padded_product()) is None:
            return f"the padded operands need more than the {request.max_workspace} bytes of workspace allowed"
        return None

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`. A static B is padded once, which is not counted."""
        return _stages(request, CudaCostModel.of(machine))

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: an upper bound, the bytes of all three copies."""
        return level_workspace(request, padded_product())

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`, and `level_executor` for what it raises."""
        return level_executor(request, padded_product())


def padded_seconds(request: Request, costs: CudaCostModel) -> float:
    """Return the predicted seconds; infinite if no padding is needed."""
    whole = row_multiple(request.arithmetic, request.k, request.n) == SEGMENT
    if whole or request.arithmetic not in UNALIGNED or request.is_empty:
        return math.inf
    return sum(math.inf if stage.seconds is None else stage.seconds for stage in _stages(request, costs))


def _stages(request: Request, costs: CudaCostModel) -> list[Stage]:
    item = request.itemsize
    if request.is_empty:
        return []
    m, k, n = request.shape
    bk, bn = PaddedProduct.padded(k, n, item)
    copies = (
        ("Pad A", k != bk, request.items_a, m * (k + bk)),
        ("Pad B", (k, n) != (bk, bn) and request.static != "B", request.items_b, k * n + bk * bn),
        ("Copy C", n != bn, request.items, m * (n + bn)),
    )
    stages = []
    for name, needed, count, each in copies:
        if needed:
            moved = float(count * each * item)
            stages.append(Stage(name, 0, moved, costs.combine(moved) / PRICES.copy_shares[item]))
    seconds = costs.gemm(request.arithmetic, m, bk, bn, request.items)
    moved = request.items * (m * bk + bk * bn + m * bn) * item
    product = Stage(f"{request.items} products {m}x{bk}x{bn}", request.flops, moved, seconds, (m, bk, bn))
    stages.insert(len(stages) - (n != bn), product)
    return stages

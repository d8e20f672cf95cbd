"""The strategy that multiplies float32 by three products of float16 halves on a GPU."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..cuda.cost_model import CudaCostModel
from ..cuda.shape import Shape
from ..cuda.split import TILE, SplitExecutor, pitch_of
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Parameters, Proposal, Source, Stage
from ..request import ACCURATE, Request

FAMILY, NAME = "dense", "split"

RATE = 2.0e14
"""Flops per second of a product by halves, the three counted as one: 2.06e14 on an H200 at 8192."""

READ = 3.5
"""Times that an operand is read or written in float32 to be scaled, split and checked: 14 bytes an element."""


@dataclass(frozen=True)
class CudaSplit:
    """Scale, check and split A and B, then one kernel for the three products of halves."""

    device: str = "cuda"
    family: str = FAMILY
    name: str = NAME
    version: int = 1
    baseline: bool = False

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        """See `Strategy.propose`: only where the request asks for the precision."""
        candidate = Candidate(FAMILY, NAME)
        if request.dtype != ACCURATE or Shape.of(request).empty or self.can_run(candidate, request, machine):
            return []
        price = sum(stage.seconds or 0.0 for stage in self.predict(candidate, request, machine))
        return [Proposal(price * (1 - 1e-9), candidate)]

    def candidates_of(self, source: Source) -> Iterable[Candidate]:
        """See `Strategy.candidates_of`: no scheme is run by it."""
        return ()

    def restore(self, key: str, parameters: Parameters, request: Request) -> Candidate | None:
        """See `Strategy.restore`."""
        return Candidate(FAMILY, NAME)

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        """See `Strategy.can_run`."""
        if request.dtype != ACCURATE:
            return f"halves are for the dtype {ACCURATE}, not for {request.dtype}"
        if not request.is_dense:
            return "the operands are structured"
        if request.batch:
            return "halves are of one product, not of a batch"
        if Shape.of(request).empty:
            return "the product is empty"
        if request.max_workspace is not None and self.workspace(candidate, request, machine) > request.max_workspace:
            return f"needs more than the {request.max_workspace} bytes of workspace allowed"
        return None

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`."""
        m, k, n = request.shape
        costs = machine.costs
        assert isinstance(costs, CudaCostModel)
        moved = 4 * READ * (m * k + k * n)
        tiles = math.ceil(m / TILE.m) * math.ceil(n / TILE.n)
        waves = math.ceil(tiles / costs.units) * costs.units
        seconds = 2 * waves * TILE.m * TILE.n * k / RATE
        streamed = 4 * (m * k + k * n + m * n)
        return [
            Stage("split", 0, moved, float(costs.combine(moved)), None),
            Stage(f"3 products {m}x{k}x{n} of halves", 3 * request.flops, streamed, seconds, request.shape),
        ]

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: halves of both operands and magnitudes for the check; the scales are left out."""
        m, k, n = request.shape
        return 4 * (m * pitch_of(k) + k * pitch_of(n)) + 4 * (m * k + k * n)

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`. Kernels are compiled when tensors come."""
        return SplitExecutor(request, self.workspace(candidate, request, machine))

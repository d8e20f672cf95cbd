"""The strategy that multiplies in tf32 by one product of scaled float16 on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..cuda.cost_model import CudaCostModel, instant_of
from ..cuda.launch import on_current_gpu
from ..cuda.packed_product import packed_executor
from ..cuda.scaled_half import FACTOR, SCALED_HALF, TILE, packed_bytes, pitch_of
from ..cuda.shape import Shape
from ..cuda.stack import missing_accelerator
from ..planning.error import error_bound
from ..planning.machine import Machine
from ..planning.strategy import BaseStrategy, Candidate, Executor, Proposal, Stage
from ..precision import TF32
from ..request import Request
from .reasons import reason_against_single

FAMILY, NAME = "dense", "scaled-half"


SHORTEST = 1024
"""Least k of proposed products: tiles are stored while nothing is multiplied. 16384x512x16384 on an H200 was 0.91 times
as fast as torch's product where 1.27 was predicted; 19456x512x32768 1.30, and with k of 1536 1.29 to 1.71."""

OVER_HALF, LATENCY = 1.04, 7e-6
"""Rate of the product within whole waves of tiles over the best of bfloat16, and seconds of a wave in which its tiles
are stored and nothing is multiplied. With MOVED the best fit to 60 products from 0.7 to 44 ms on an H200: 5% in the
mean, from -18 to +10% with aligned rows. Others took up to 27% longer than predicted: their tiles of C are stored
without the tensor memory accelerator."""

MOVED = 13.0
"""Bytes per element of an operand whose copy takes as long as scaling it: float32 is read twice, float16 is written,
and sums of tiles are written and read."""

LAUNCHES, PREPARED_LAUNCHES, STARTED = 12, 8, 6e-5
"""Number of launches of a product, of one whose B was scaled before, and host seconds of each: on an H200 4096 cubed
took 0.49 to 0.74 ms, and 0.28 to 0.39 ms with B scaled before, of which the device works 0.33 and 0.26."""

AFTER = 1.2e-5
"""Seconds of the kernels behind the product that check it, and that return at once as nothing was lost."""


@dataclass(frozen=True)
class CudaScaledHalf(BaseStrategy):
    """Scale A and B by powers of two into the range of float16, multiply these, check what was lost."""

    name: str = NAME
    family: str = FAMILY

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        """See `Strategy.propose`: only for tf32."""
        if request.precision != TF32 or not request.is_dense or Shape.of(request).empty:
            return []
        candidate = Candidate(FAMILY, NAME)
        if reason := self.can_run(candidate, request, machine):
            return reason
        if request.k < SHORTEST:
            return f"K is below {SHORTEST}: storing C takes longer than multiplying"
        costs = CudaCostModel.of(machine)
        if not (costs.knows("bfloat16") and costs.knows(TF32)):
            return f"the profile {machine.profile.id} has no rates of bfloat16 or tf32 products, or of sums"
        if float(costs.gemm(TF32, *request.shape)) < (instant := instant_of(TF32, request.k, request.n)):
            return f"the vendor's product takes less than {1e6 * instant:.0f} us: launches alone would eat the gain"
        return [self.proposal(candidate, request, machine)]

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        if request.precision != TF32:
            return f"scaled float16 is for products in {TF32}, not in {request.arithmetic}"
        if reason := reason_against_single(request, "scaled float16 is") or on_current_gpu(missing_accelerator):
            return reason
        bound = FACTOR * error_bound(None, request)
        if request.max_error is not None and request.max_error < bound:
            return f"its error can reach {bound:.2g}, more than the {request.max_error:.2g} allowed"
        return self.workspace_reason(candidate, request, machine)

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`. A static B is scaled once, which is not counted."""
        m, k, n = request.shape
        costs = CudaCostModel.of(machine)
        static = request.static == "B"
        stages = []
        for name, size in (("Scale A", m * k), ("Scale B", 0 if static else k * n)):
            if size:
                stages.append(Stage(name, 0.0, MOVED * size, float(costs.combine(MOVED * size))))
        moved = 2.0 * (m * k + k * n) + 4.0 * m * n
        seconds = float(costs.tiled(m, k, n, (TILE.m, TILE.n), OVER_HALF, moved, LATENCY))
        stages.append(Stage(f"product {m}x{k}x{n} in float16", request.flops, moved, seconds, request.shape))
        launched = STARTED * (PREPARED_LAUNCHES if static else LAUNCHES)
        waited = max(AFTER, launched - sum(stage.seconds or 0.0 for stage in stages))
        return [*stages, Stage("Check", 0.0, 0.0, waited)]

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: both operands in float16, and their sums; an upper bound."""
        m, k, n = request.shape
        scaled = packed_bytes(k, n) + 2 * m * pitch_of(k) + 4 * (2 * m + k)
        return scaled + (m * k + k * n) // 4 + 8 * (m + k + n)

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`. Kernels are compiled at the first run."""
        return packed_executor(request, SCALED_HALF, self.workspace(candidate, request, machine))

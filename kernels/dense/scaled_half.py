"""The strategy that multiplies in tf32 by one product of scaled float16 on a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from ..cuda.cost_model import CudaCostModel, instant_reason, missing_rates
from ..cuda.launch import on_current_gpu
from ..cuda.packed_product import PackedArithmetic
from ..cuda.scaled_half import FACTOR, SCALED_HALF, TILE, packed_bytes, pitch_of
from ..cuda.stack import missing_accelerator
from ..measured import measured
from ..planning.limits import error_bound
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Stage
from ..precision import TF32
from ..request import Request
from .packed import PackedStrategy, pass_over

NAME = "scaled-half"

PRICES = measured("dense.scaled-half")


@dataclass(frozen=True)
class CudaScaledHalf(PackedStrategy):
    """Scale A and B by powers of two into the range of float16, multiply these, check what was lost."""

    name: str = NAME
    precision, subject = TF32, "scaled float16 is"

    def reason_to_leave(self, request: Request, machine: Machine) -> str | None:
        if request.k < PRICES.shortest:
            return f"K is below {PRICES.shortest}: storing C takes longer than multiplying"
        vendor = float(machine.costs.gemm(TF32, *request.shape))
        return missing_rates(machine, "bfloat16", TF32) or instant_reason(request, vendor)

    def reason(self, request: Request) -> str | None:
        return super().reason(request) or on_current_gpu(missing_accelerator)

    def arithmetic(self, candidate: Candidate) -> PackedArithmetic:
        return SCALED_HALF

    def error(self, request: Request) -> float:
        return FACTOR * error_bound(None, request)

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`. A static B is scaled once, which is not counted."""
        m, k, n = request.shape
        costs = CudaCostModel.of(machine)
        static = request.static == "B"
        stages = []
        for name, size in (("Scale A", m * k), ("Scale B", 0 if static else k * n)):
            if size:
                stages.append(pass_over(name, PRICES.moved * size, costs))
        moved = 2.0 * (m * k + k * n) + 4.0 * m * n
        seconds = float(costs.tiled(m, k, n, (TILE.m, TILE.n), PRICES.over_half, moved, PRICES.latency))
        stages.append(Stage(f"product {m}x{k}x{n} in float16", request.flops, moved, seconds, request.shape))
        launched = PRICES.started * (PRICES.prepared_launches if static else PRICES.launches)
        waited = max(PRICES.after, launched - sum(stage.seconds or 0.0 for stage in stages))
        return [*stages, Stage("Check", 0.0, 0.0, waited)]

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: both operands in float16, and their sums; an upper bound."""
        m, k, n = request.shape
        scaled = packed_bytes(k, n) + 2 * m * pitch_of(k) + 4 * (2 * m + k)
        return scaled + (m * k + k * n) // 4 + 8 * (m + k + n)

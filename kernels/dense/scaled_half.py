"""The strategy that multiplies in tf32 by one product of scaled float16 on a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from ..cuda.cost_model import CudaCostModel, instant_reason, missing_rates
from ..cuda.launch import on_current_gpu
from ..cuda.packed_product import PackedArithmetic
from ..cuda.scaled_half import FACTOR, SCALED_HALF, TILE, packed_bytes, pitch_of
from ..cuda.stack import missing_accelerator
from ..planning.error import error_bound
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Stage
from ..precision import TF32
from ..request import Request
from .packed import PackedStrategy, pass_over

NAME = "scaled-half"


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
class CudaScaledHalf(PackedStrategy):
    """Scale A and B by powers of two into the range of float16, multiply these, check what was lost."""

    name: str = NAME
    precision, subject = TF32, "scaled float16 is"

    def reason_to_leave(self, request: Request, machine: Machine) -> str | None:
        if request.k < SHORTEST:
            return f"K is below {SHORTEST}: storing C takes longer than multiplying"
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
                stages.append(pass_over(name, MOVED * size, costs))
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

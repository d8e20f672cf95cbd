"""Strategies of dense products on a GPU by kernels of an arithmetic of their own: e4m3, and scaled float16 for tf32."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..cuda import scaled_half
from ..cuda.cost_model import CudaCostModel, instant_reason, missing_rates
from ..cuda.fp8 import BY_VENDOR, missing_block_scales, packed_bytes, rows_bytes, vendor_reason
from ..cuda.launch import on_current_gpu
from ..cuda.packed_product import PackedArithmetic, packed_executor
from ..cuda.stack import missing_accelerator
from ..measured import measured
from ..planning.limits import error_bound
from ..planning.machine import Machine
from ..planning.strategy import BaseStrategy, Candidate, Executor, Proposal, Stage
from ..precision import FP8, TF32
from ..request import Request

FAMILY = "dense"

FP8_VENDOR = "fp8-vendor"

FP8_PRICES, HALF_PRICES = measured("dense.fp8-vendor"), measured("dense.scaled-half")

FP8_ERROR = 2.0**-3 + 2.0**-6
"""Bound on the error of an element of C relative to k max|A| max|B|: two roundings by 2^-4, and the sums."""


@dataclass(frozen=True)
class PackedStrategy(BaseStrategy):
    """A strategy whose products a `PackedArithmetic` computes, for one precision; `subject` names it, with a verb."""

    family: str = FAMILY
    precision: ClassVar[str]
    subject: ClassVar[str]

    @abstractmethod
    def arithmetic(self, candidate: Candidate) -> PackedArithmetic:
        """Return the kernels of a candidate."""

    def error(self, request: Request) -> float:
        """Return a bound of the error that `max_error` limits, where it is not that of the dtype."""
        return 0.0

    def is_for(self, request: Request) -> bool:
        """Return whether the strategy says why it proposes nothing for a request."""
        return request.precision == self.precision

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        candidate = Candidate(FAMILY, self.name)
        if not self.is_for(request):
            return []
        reason = self.can_run(candidate, request, machine) or self.reason_to_leave(request, machine)
        return reason or [self.proposal(candidate, request, machine)]

    def reason_to_leave(self, request: Request, machine: Machine) -> str | None:
        """Return the reason why a request that can be run is left to other strategies, or None."""
        return missing_rates(machine, "bfloat16")

    def reason(self, request: Request) -> str | None:
        """Return the reason why the kernels do not compute a request, its limits apart, or None."""
        if request.precision != self.precision:
            return f"{self.subject} for the precision {self.precision}, not for {request.arithmetic}"
        if request.batch:
            return f"{self.subject} of one product, not of a batch"
        return "the product is empty" if request.is_empty else None

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        if reason := self.reason(request):
            return reason
        if request.max_error is not None and request.max_error < (bound := self.error(request)):
            return f"its error can reach {bound:.2g}, more than the {request.max_error:.2g} allowed"
        most = request.max_workspace
        if most is None or self.workspace(candidate, request, machine) <= most:
            return None
        return f"needs more than the {most} bytes of workspace allowed"

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`. Kernels are compiled at the first run."""
        return packed_executor(request, self.arithmetic(candidate), self.workspace(candidate, request, machine))


def pass_over(name: str, moved: float, costs: CudaCostModel) -> Stage:
    """Return the stage of a kernel that only moves so many bytes."""
    return Stage(name, 0.0, moved, float(costs.combine(moved)))


@dataclass(frozen=True)
class CudaFp8(PackedStrategy):
    """Quantise A, and B unless it is static, to e4m3 with block scales; then torch's `scaled_mm`."""

    name: str = FP8_VENDOR
    precision, subject = FP8, "products in e4m3 are"

    def reason(self, request: Request) -> str | None:
        return super().reason(request) or vendor_reason(*request.shape) or on_current_gpu(missing_block_scales)

    def arithmetic(self, candidate: Candidate) -> PackedArithmetic:
        return BY_VENDOR

    def error(self, request: Request) -> float:
        return FP8_ERROR

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`. A static B is quantised once, which is not counted."""
        (m, k, n), item = request.shape, request.itemsize
        costs = CudaCostModel.of(machine)
        of_a, of_b = float(rows_bytes(m, k)), float(packed_bytes(k, n))
        stages = [pass_over("Quantise A", m * k * item + of_a, costs)]
        if request.static != "B":
            stages.append(pass_over("Quantise B", k * n * item + of_b, costs))
        moved = of_a + of_b + m * n * item
        seconds = float(costs.tiled(m, k, n, FP8_PRICES.tile, FP8_PRICES.over_half, moved))
        return [*stages, Stage(f"product {m}x{k}x{n} in e4m3", request.flops, moved, seconds, request.shape)]

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: quantised operands, and C where `out` may be A's memory; an upper bound."""
        m, k, n = request.shape
        return packed_bytes(k, n) + rows_bytes(m, k) + m * n * request.itemsize


@dataclass(frozen=True)
class CudaScaledHalf(PackedStrategy):
    """Scale A and B by powers of two into the range of float16, multiply these, check what was lost."""

    name: str = "scaled-half"
    precision, subject = TF32, "scaled float16 is"

    def reason_to_leave(self, request: Request, machine: Machine) -> str | None:
        if request.k < HALF_PRICES.shortest:
            return f"K is below {HALF_PRICES.shortest}: storing C takes longer than multiplying"
        vendor = float(machine.costs.gemm(TF32, *request.shape))
        return missing_rates(machine, "bfloat16", TF32) or instant_reason(request, vendor)

    def reason(self, request: Request) -> str | None:
        return super().reason(request) or on_current_gpu(missing_accelerator)

    def arithmetic(self, candidate: Candidate) -> PackedArithmetic:
        return scaled_half.SCALED_HALF

    def error(self, request: Request) -> float:
        return scaled_half.FACTOR * error_bound(None, request)

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`. A static B is scaled once, which is not counted."""
        m, k, n = request.shape
        costs = CudaCostModel.of(machine)
        static, tile = request.static == "B", scaled_half.TILE
        stages = [pass_over("Scale A", HALF_PRICES.moved * (m * k), costs)]
        if not static:
            stages.append(pass_over("Scale B", HALF_PRICES.moved * (k * n), costs))
        moved = 2.0 * (m * k + k * n) + 4.0 * m * n
        seconds = float(costs.tiled(m, k, n, (tile.m, tile.n), HALF_PRICES.over_half, moved, HALF_PRICES.latency))
        stages.append(Stage(f"product {m}x{k}x{n} in float16", request.flops, moved, seconds, request.shape))
        launched = HALF_PRICES.started * (HALF_PRICES.prepared_launches if static else HALF_PRICES.launches)
        waited = max(HALF_PRICES.after, launched - sum(stage.seconds or 0.0 for stage in stages))
        return [*stages, Stage("Check", 0.0, 0.0, waited)]

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: both operands in float16, and their sums; an upper bound."""
        m, k, n = request.shape
        scaled = scaled_half.packed_bytes(k, n) + 2 * m * scaled_half.pitch_of(k) + 4 * (2 * m + k)
        return scaled + (m * k + k * n) // 4 + 8 * (m + k + n)

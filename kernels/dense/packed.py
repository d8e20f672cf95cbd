"""Strategies of dense products on a GPU in an arithmetic of their own: e4m3, scaled float16 for tf32, and int8."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..cuda import scaled_half
from ..cuda.cost_model import CudaCostModel, instant_reason, missing_rates
from ..cuda.fp8 import BY_VENDOR, missing_block_scales, packed_bytes, rows_bytes, vendor_reason
from ..cuda.int8 import BY_KERNEL, SMALL_TILE, TILE, inner_size, vendor_sizes
from ..cuda.launch import on_current_gpu
from ..cuda.packed_product import EVERY, PackedArithmetic, packed_executor
from ..cuda.stack import missing_accelerator
from ..measured import measured
from ..overflow import range_reason
from ..planning.limits import error_bound
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Proposal, Stage, Strategy
from ..precision import FP8, TF32
from ..request import INT8, Layout, Request

FAMILY = "dense"

FP8_VENDOR = "fp8-vendor"

FP8_PRICES, HALF_PRICES = measured("dense.fp8-vendor"), measured("dense.scaled-half")

FP8_ERROR = 2.0**-3 + 2.0**-6
"""Bound on the error of an element of C relative to k max|A| max|B|: two roundings by 2^-4, and the sums."""


@dataclass(frozen=True)
class PackedStrategy(Strategy):
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


INT8_PRICES = measured("dense.int8")

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
    host = INT8_PRICES.vendor_host + INT8_PRICES.copy_host * len(stages)
    copied = (m * k + rows * inner) * ((rows, inner) != (m, k)) + WIDE * (m * n + rows * cols) * (
        (rows, cols) != (m, n)
    )
    if copied:
        stages.append(pass_over("Pad A and C", float(items * copied), costs))
    moved = float(m * k + k * n + WIDE * m * n)
    tile, rate, latency = INT8_PRICES.by_columns if by_columns or copied_b else INT8_PRICES.by_rows
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
    host = INT8_PRICES.host - INT8_PRICES.prepared_host * static + INT8_PRICES.copy_host * len(stages)
    moved = float((m + n) * inner + WIDE * m * n)
    (rate, latency), tile = INT8_PRICES.kernel, SMALL_TILE if m <= SMALL_TILE.m else TILE
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
    seconds = INT8_PRICES.check + operands * INT8_PRICES.checked_operand + moved / INT8_PRICES.check_rate
    return [Stage("Check the range", 0.0, moved, seconds)]


@dataclass(frozen=True)
class CudaInt8(PackedStrategy):
    """Our kernel of int8 tensor cores, which takes any sizes; B is stored by columns first, if it is not."""

    name: str = INT8

    def is_for(self, request: Request) -> bool:
        return request.dtype == INT8

    def reason(self, request: Request) -> str | None:
        if request.dtype != INT8:
            return f"the strategy {INT8} is for the dtype {INT8}, not for {request.dtype}"
        return range_reason(None, request)

    def arithmetic(self, candidate: Candidate) -> PackedArithmetic:
        return BY_KERNEL

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        return kernel_stages(request, CudaCostModel.of(machine))

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: an upper bound, as operands that can be read in place are not copied."""
        m, k, n = request.shape
        return 0 if request.is_empty else (m + n) * (inner_size(k) + k)

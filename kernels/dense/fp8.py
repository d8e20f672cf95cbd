"""The strategy that multiplies in e4m3 with block scales on a GPU, where a request permits it."""

from __future__ import annotations

from dataclasses import dataclass

from ..cuda.cost_model import CudaCostModel
from ..cuda.fp8 import BY_VENDOR, missing_block_scales, packed_bytes, rows_bytes, vendor_reason
from ..cuda.launch import on_current_gpu
from ..cuda.packed_product import PackedArithmetic
from ..measured import measured
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Stage
from ..precision import FP8
from ..request import Request
from .packed import PackedStrategy, pass_over

NAME = "fp8-vendor"

PRICES = measured("dense.fp8-vendor")

ERROR = 2.0**-3 + 2.0**-6
"""Bound on the error of an element of C relative to k max|A| max|B|: two roundings by 2^-4, and the sums."""


@dataclass(frozen=True)
class CudaFp8(PackedStrategy):
    """Quantise A, and B unless it is static, to e4m3 with block scales; then torch's `scaled_mm`."""

    name: str = NAME
    precision, subject = FP8, "products in e4m3 are"

    def reason(self, request: Request) -> str | None:
        return super().reason(request) or vendor_reason(*request.shape) or on_current_gpu(missing_block_scales)

    def arithmetic(self, candidate: Candidate) -> PackedArithmetic:
        return BY_VENDOR

    def error(self, request: Request) -> float:
        return ERROR

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`. A static B is quantised once, which is not counted."""
        (m, k, n), item = request.shape, request.itemsize
        costs = CudaCostModel.of(machine)
        of_a, of_b = float(rows_bytes(m, k)), float(packed_bytes(k, n))
        stages = [pass_over("Quantise A", m * k * item + of_a, costs)]
        if request.static != "B":
            stages.append(pass_over("Quantise B", k * n * item + of_b, costs))
        moved = of_a + of_b + m * n * item
        seconds = float(costs.tiled(m, k, n, PRICES.tile, PRICES.over_half, moved))
        return [*stages, Stage(f"product {m}x{k}x{n} in e4m3", request.flops, moved, seconds, request.shape)]

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: quantised operands, and C where `out` may be A's memory; an upper bound."""
        m, k, n = request.shape
        return packed_bytes(k, n) + rows_bytes(m, k) + m * n * request.itemsize

"""The strategy that multiplies int8 into int32 by our kernel on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..cuda.cost_model import CudaCostModel
from ..cuda.int8_operands import BY_KERNEL, inner_size
from ..cuda.packed_product import packed_executor
from ..cuda.shape import Shape
from ..overflow import range_reason
from ..planning.machine import Machine
from ..planning.strategy import BaseStrategy, Candidate, Executor, Proposal, Stage
from ..request import INT8, Request
from .int8_costs import kernel_stages

FAMILY, NAME = "dense", "int8"


@dataclass(frozen=True)
class CudaInt8(BaseStrategy):
    """Our kernel of int8 tensor cores, which takes any sizes; B is stored by columns first, if it is not."""

    name: str = NAME
    family: str = FAMILY

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        if request.dtype != INT8 or not request.is_dense or Shape.of(request).empty:
            return []
        candidate = Candidate(FAMILY, NAME)
        if reason := self.can_run(candidate, request, machine):
            return reason
        if not machine.costs.knows("bfloat16"):
            return f"the profile {machine.profile.id} has no rates of bfloat16 products or of sums"
        return [self.proposal(candidate, request, machine)]

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        if request.dtype != INT8:
            return f"the strategy {NAME} is for the dtype {INT8}, not for {request.dtype}"
        if not request.is_dense:
            return "the operands are structured"
        return range_reason(None, request)

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        return [] if Shape.of(request).empty else kernel_stages(request, CudaCostModel.of(machine))

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: an upper bound, as operands that can be read in place are not copied."""
        m, k, n = request.shape
        return 0 if Shape.of(request).empty else (m + n) * (inner_size(k) + k)

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`. Kernels are compiled at the first run."""
        return packed_executor(request, BY_KERNEL, self.workspace(candidate, request, machine))

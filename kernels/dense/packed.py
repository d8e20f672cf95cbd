"""Base class of the strategies of dense products on a GPU by kernels of an arithmetic of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..cuda.cost_model import CudaCostModel, missing_rates
from ..cuda.packed_product import PackedArithmetic, packed_executor
from ..planning.machine import Machine
from ..planning.strategy import BaseStrategy, Candidate, Executor, Proposal, Stage
from ..request import Request

FAMILY = "dense"


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
        return self.workspace_reason(candidate, request, machine)

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`. Kernels are compiled at the first run."""
        return packed_executor(request, self.arithmetic(candidate), self.workspace(candidate, request, machine))


def pass_over(name: str, moved: float, costs: CudaCostModel) -> Stage:
    """Return the stage of a kernel that only moves so many bytes."""
    return Stage(name, 0.0, moved, float(costs.combine(moved)))

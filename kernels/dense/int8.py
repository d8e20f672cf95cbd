"""The strategy that multiplies int8 into int32 by our kernel on a GPU, with or without a scheme that is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...schemes_db.program import Program
from ..codegen.maps import has_fractions
from ..cuda.cost_model import CudaCostModel
from ..cuda.flat_program import reason_against_level
from ..cuda.int8_executor import Int8Executor, by_level
from ..cuda.int8_level import Int8TensorLevel, int8_level
from ..cuda.shape import Shape
from ..overflow import range_reason
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Proposal, Stage
from ..request import INT8, Request
from .int8_costs import level_stages
from .named_chains import FAMILY, RunsNamedChains

NAME = "int8"


@dataclass(frozen=True)
class CudaInt8(RunsNamedChains):
    """Our kernel of int8 tensor cores, which takes any sizes; B is stored by columns first, if it is not.

    Under a scheme the sums of blocks are stored in int8, which the stated range must prove, all products in int32, and
    these are combined modulo 2^32. Schemes are not proposed: up to 16384 none was faster than
    the product without one.
    """

    device: str = "cuda"
    family: str = FAMILY
    name: str = NAME
    version: int = 1
    baseline: bool = False

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        """See `Strategy.propose`: the product without a scheme."""
        if request.dtype != INT8 or not request.is_dense or Shape.of(request).empty:
            return []
        candidate = Candidate(FAMILY, NAME)
        if reason := self.can_run(candidate, request, machine):
            return reason
        assert isinstance(machine.costs, CudaCostModel)
        if not machine.costs.knows("bfloat16"):
            return f"the profile {machine.profile.id} has no rates of bfloat16 products or of sums"
        price = sum(stage.seconds or 0.0 for stage in self.predict(candidate, request, machine))
        return [Proposal(price * (1 - 1e-9), candidate)]

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        """See `Strategy.can_run`."""
        if request.dtype != INT8:
            return f"the strategy {NAME} is for the dtype {INT8}, not for {request.dtype}"
        if not request.is_dense:
            return "the operands are structured"
        program = candidate.program
        if program is not None and (reason := _reason_against(program)):
            return reason
        return range_reason(program, request, wraps=False)

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`."""
        assert isinstance(machine.costs, CudaCostModel)
        return [] if Shape.of(request).empty else level_stages(_level(candidate), request, machine.costs)

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: an upper bound, as operands that can be read in place are not copied."""
        m, k, n = request.shape
        return 0 if Shape.of(request).empty else _level(candidate).workspace(m, k, n) + (m * k + k * n)

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`. Kernels are compiled at the first run."""
        return Int8Executor(request, by_level(_level(candidate)), self.workspace(candidate, request, machine))


def _level(candidate: Candidate) -> Int8TensorLevel:
    return int8_level(candidate.program)


def _reason_against(program: Program) -> str | None:
    """Return the reason why a program is not run above products of int8, or None."""
    if reason := reason_against_level(program, "float32", int8_level):
        return reason
    return "the program has fractions: an int8 product needs a scheme over Z" if has_fractions(program) else None

"""The strategy that runs levels of a scheme above products in e4m3 on a GPU; only schemes that are named.

Its prices are predicted from the measured rate of `fp8-blocked`: none is measured itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..cuda.cost_model import CudaCostModel
from ..cuda.dtypes import itemsize
from ..cuda.flat_program import reason_against_level
from ..cuda.fp8 import TILE, on_current_gpu, rows_bytes
from ..cuda.fp8_executor import Fp8Executor, by_level
from ..cuda.fp8_level import Fp8Level, fp8_level
from ..cuda.stack import missing_accelerator
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Parameters, Proposal, Stage
from ..request import FP8, Request
from .flat_pool import FlatChain
from .fp8 import BLOCKED, FAMILY, OVER_HALF, reason_against_fp8
from .named_chains import RunsNamedChains
from .pool import restored_levels
from .scheme_costs import STAGES

NAME = "fp8-scheme"


@dataclass(frozen=True)
class CudaFp8Scheme(RunsNamedChains):
    """Combine A and Combine B into e4m3 with scales, our products of those, Combine H in the operands' dtype.

    B is read once more before, for the scales of its sums; both once if it is static.
    """

    device: str = "cuda"
    family: str = FAMILY
    name: str = NAME
    version: int = 2
    baseline: bool = False

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        """See `Strategy.propose`: nothing, as errors of a scheme in 8 bits are twice those without it."""
        if request.dtype not in FP8.values():
            return []
        return reason_against_fp8(request) or f"{NAME} runs only a scheme that is named; give one"

    def restore(self, key: str, parameters: Parameters, request: Request) -> Candidate | None:
        """See `Strategy.restore`."""
        levels = restored_levels(key)
        return None if levels is None else Candidate(FAMILY, NAME, FlatChain(levels))

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        """See `Strategy.can_run`."""
        program = candidate.program
        if reason := reason_against_fp8(request) or on_current_gpu(missing_accelerator):
            return reason
        if program is None:
            return f"{NAME} runs only a scheme that is named; give one"
        if reason := reason_against_level(program, request.plain_dtype, fp8_level):
            return reason
        if request.max_error is not None:
            return "the error of a scheme in e4m3 has no bound here; leave max_error or the scheme out"
        if request.max_workspace is not None and self.workspace(candidate, request, machine) > request.max_workspace:
            return f"needs more than the {request.max_workspace} bytes of workspace allowed"
        return None

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`. The sums of a static B are quantised once, which is not counted."""
        level, (m, k, n), item = _level(candidate), request.shape, itemsize(request.dtype)
        costs = machine.costs
        assert isinstance(costs, CudaCostModel)
        bm, bk, bn = level.blocks(m, k, n)
        of_a, of_b = float(rows_bytes(level.rank * bm, bk)), float(level.packed_bytes(k, n))
        moved = m * k * item + of_a
        stages = [Stage(STAGES[0], 0.0, moved, float(costs.combine(moved)))]
        if request.static != "B":
            for name, moved in (("Largest of B", float(k * n * item)), (STAGES[1], k * n * item + of_b)):
                stages.append(Stage(name, 0.0, moved, float(costs.combine(moved))))
        moved = of_a + of_b + level.rank * bm * bn * item
        # All products are one launch, whose tiles follow each other.
        rows = level.rank * -(-bm // TILE.m) * TILE.m
        seconds = float(costs.tiled(rows, bk, bn, (TILE.m, TILE.n), OVER_HALF[BLOCKED], moved))
        flops = 2.0 * level.rank * bm * bk * bn
        stages.append(Stage(f"{level.rank} products {bm}x{bk}x{bn} in e4m3", flops, moved, seconds, (bm, bk, bn)))
        moved = (level.rank * bm * bn + m * n) * item
        return [*stages, Stage(STAGES[2], 0.0, moved, float(costs.combine(moved)))]

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: an upper bound, a copy of A included."""
        (m, k, n), item = request.shape, itemsize(request.dtype)
        return _level(candidate).workspace(m, k, n, item) + m * k * item

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`. Kernels are compiled at the first run."""
        return Fp8Executor(request, by_level(_level(candidate)), self.workspace(candidate, request, machine))


def _level(candidate: Candidate) -> Fp8Level:
    program = candidate.program
    assert program is not None
    return fp8_level(program)

"""Base class of all CPU strategies: a core provides the cost, the workspace and the executor; the price of stages.

And what none of them can run.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ...schemes_db.program import Program
from ..codegen.maps import has_fractions
from ..dtypes import dtype_of
from ..overflow import range_reason
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Stage, Strategy
from ..request import Request
from .blas import backends
from .executor import ARRAYS, ArrayOperands, Core, MatrixExecutor, copy_bytes
from .partition import size_reason


@dataclass(frozen=True)
class CpuStrategy(Strategy):
    """A strategy whose candidates are executed by a `Core`. Subclasses add `propose`, `can_run` and `core`.

    `operands`: what callers pass to its executors.
    """

    operands: ClassVar[ArrayOperands] = ARRAYS

    device: str = "cpu"

    @abstractmethod
    def core(self, candidate: Candidate, request: Request, machine: Machine) -> Core:
        """Return the core of a candidate that can run a request which is not empty."""

    def mode(self, candidate: Candidate) -> str:
        """Return the mode of the library's products: "whole" (all threads each) or "tasks" (one thread each)."""
        return "whole"

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        stages = self.core(candidate, request, machine).stages(request.items)
        return priced(stages, request.dtype, machine, self.mode(candidate))

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`; exact."""
        if request.is_empty:
            return 0
        return self.core(candidate, request, machine).workspace(machine.threads) + sum(copy_bytes(request))

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        core = None if request.is_empty else self.core(candidate, request, machine)
        if core is not None:
            core.compile()
        return MatrixExecutor(request, core, machine.pool, machine.threads, self.operands)


def priced(stages: Sequence[Stage], dtype: str, machine: Machine, mode: str = "whole") -> list[Stage]:
    """Return the stages with seconds by the machine's cost model; None if it has no rate."""

    def seconds(stage: Stage) -> Any:
        if stage.product is None:
            return machine.costs.combine(stage.bytes, stage.flops)
        if dtype == "int8":
            return None  # products by float32 in chunks: not measured
        full = 2.0 * dtype_of(dtype).parts ** 2 * math.prod(stage.product)
        return machine.costs.gemm(dtype, *stage.product, count=stage.flops / full if full else 0, mode=mode)

    return [replace(stage, seconds=seconds(stage)) for stage in stages]


def basic_reason(program: Program | None, request: Request) -> str | None:
    """Return the reason why no strategy of the CPU can run this, or None."""
    if not any(backend.supports(request.dtype) for backend in backends()):
        return f"no installed library multiplies {request.dtype} on a processor; install torch"
    if program is None:
        return range_reason(None, request)
    if program.ring.characteristic:
        return f"the program holds over {program.ring} only; lift its scheme to Z first"
    if request.exact and has_fractions(program):
        return f"the program has fractions: an {request.dtype} product needs a scheme over Z"
    if request.dtype == "int8" and not program.target.is_general:
        return f"int8 products are of whole matrices, and {program.target} is not; convert with .astype(np.int32)"
    return size_reason(program, request.shape) or range_reason(program, request)

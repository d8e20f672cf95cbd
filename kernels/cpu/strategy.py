"""Base class of all CPU strategies: a core provides the cost, the workspace and the executor."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from ..planning.machine import Machine
from ..planning.strategy import BaseStrategy, Candidate, Executor, Parameters, Stage
from ..request import Request
from .executor import MatrixExecutor, StagedCore, copy_bytes, is_empty
from .timing import priced


@dataclass(frozen=True)
class CpuStrategy(BaseStrategy):
    """A strategy whose candidates are executed by a `StagedCore`. Subclasses add `propose`, `can_run` and `core`."""

    version: int = 3
    device: str = "cpu"

    @abstractmethod
    def core(self, candidate: Candidate, request: Request, machine: Machine) -> StagedCore:
        """Return the core of a candidate that can run a request which is not empty."""

    def mode(self, candidate: Candidate) -> str:
        """Return the mode of the library's products: "whole" (all threads each) or "tasks" (one thread each)."""
        return "whole"

    def restore(self, key: str, parameters: Parameters, request: Request) -> Candidate | None:
        """See `Strategy.restore`: the candidate without a source."""
        return None if key else Candidate(self.family, self.name, None, parameters)

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        if is_empty(request):
            return []
        stages = self.core(candidate, request, machine).stages(request.items)
        return priced(stages, request.dtype, machine, self.mode(candidate))

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`; exact."""
        if is_empty(request):
            return 0
        return self.core(candidate, request, machine).workspace(machine.threads) + sum(copy_bytes(request))

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        if is_empty(request):
            return MatrixExecutor(request, None, machine.pool)
        core = self.core(candidate, request, machine)
        core.compile()
        return MatrixExecutor(request, core, machine.pool, machine.threads)

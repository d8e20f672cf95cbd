"""A strategy as another package would register it."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from lcma.kernels import Candidate, Proposal, Stage


@dataclass(frozen=True)
class Plugin:
    """A strategy of dense products by `multiply`, of (a, b, out=None), that says it is faster than every other one."""

    multiply: Callable[..., Any]
    reluctance: str | None = None
    device: str = "cpu"
    family: str = "dense"
    name: str = "plugin"
    baseline: bool = False

    def propose(self, request, machine):
        return [Proposal(1e-12, Candidate(self.family, self.name))] if request.is_dense else []

    def candidates_of(self, source):
        yield Candidate(self.family, self.name, source)

    def restore(self, key, parameters, request):
        return Candidate(self.family, self.name)

    def can_run(self, candidate, request, machine):
        return self.reluctance

    def predict(self, candidate, request, machine):
        return [Stage("magic", 0, 0, 1e-12)]

    def workspace(self, candidate, request, machine):
        return 0

    def build(self, candidate, request, machine):
        return SimpleNamespace(run=self.multiply, workspace=0)

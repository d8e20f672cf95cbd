"""Base class of the strategies of Kronecker-sparse products on every device."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from ...errors import PlanError
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Parameters, Proposal, Stage
from ..request import Layout, Request
from ..structure import DENSE as PLAIN
from .chain import KroneckerSparse
from .rewrites import DENSE, WIDENED

FAMILY = "kronecker"


def structure_of(request: Request) -> KroneckerSparse | None:
    """Return the Kronecker-sparse structure of A if B and C are plain matrices; else None."""
    first, second, third = request.structures
    return first if isinstance(first, KroneckerSparse) and second is third is PLAIN else None


class KroneckerStrategy(ABC):
    """Proposals, refusals common to every device, and candidates without sources."""

    name: str
    baseline: bool

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        """See `Strategy.propose`; candidates that cannot run are proposed too, to be refused with a reason."""
        if structure_of(request) is None:
            return []
        found = []
        for candidate in self.candidates(request):
            priced = not self.baseline and self.can_run(candidate, request, machine) is None
            stages = self.predict(candidate, request, machine) if priced else []
            seconds = [math.nan if stage.seconds is None else stage.seconds for stage in stages]
            found.append(Proposal(sum(seconds) * (1 - 1e-9), candidate))
        return found

    def restore(self, key: str, parameters: Parameters, request: Request) -> Candidate | None:
        """See `Strategy.restore`: None if the parameters are not those of a current candidate."""
        if key or structure_of(request) is None:
            return None
        known = [name for name, _ in next(iter(self.candidates(request))).parameters]
        if [name for name, _ in parameters] != known or not all(type(value) is int for _, value in parameters):
            return None
        return Candidate(FAMILY, self.name, None, parameters) if all(int(x) >= 0 for _, x in parameters) else None

    @abstractmethod
    def candidates(self, request: Request) -> Iterator[Candidate]:
        """Yield the candidates of a Kronecker-sparse request, whether they can run or not."""

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        """See `Strategy.can_run`."""
        structure = structure_of(request)
        if structure is None:
            return "no operand is Kronecker-sparse"
        if request.batch:
            return "Kronecker-sparse products take one matrix X; join the leading sizes of a batch"
        if Layout.SCATTERED in request.layouts:
            return "X must be stored with contiguous rows or columns; pass a contiguous copy of X"
        if reason := self.device_reason(candidate, request, machine):
            return reason
        if self.name == WIDENED and all(one.d == 1 for one in structure.patterns):
            return "d = 1: nothing is to be widened"
        if self.name == DENSE and (extra := structure.extra_elements * request.itemsize) > request.max_extra_bytes:
            return f"the dense matrix takes {extra} bytes more than the factors; allow it with max_extra_bytes"
        return None

    @abstractmethod
    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`."""

    @abstractmethod
    def device_reason(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        """Return the reason why the device cannot run a candidate for a Kronecker-sparse request, or None."""


def structure_in(request: Request) -> KroneckerSparse:
    """Return the structure of A of a request that `can_run` accepts.

    Raises:
        PlanError: A is not Kronecker-sparse.
    """
    structure = structure_of(request)
    if structure is None:
        raise PlanError("no operand is Kronecker-sparse")
    return structure

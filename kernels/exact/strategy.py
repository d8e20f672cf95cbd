"""What the strategies of exact products share on every device: their candidates, and the refusal of a core."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import PlanError
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Proposal, Source, Stage, Strategy
from ..request import BITS, PLAIN, Request
from .schemes import ExactChain, restored_chain

SCHEME = "scheme"


@dataclass(frozen=True)
class ExactStrategy(Strategy):
    """A strategy for exact products: "scheme" runs levels of a scheme, any other name one product without levels."""

    family: str = "exact"

    @abstractmethod
    def core(self, candidate: Candidate, request: Request, machine: Machine) -> Any:
        """Return the core of a candidate for a request that is not empty.

        Raises:
            PlanError: a result or a sum of blocks exceeds its dtype, or a scheme is not valid over the ring.
        """

    @abstractmethod
    def priced(self, core: Any, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """Return the stages of a core for all matrices of the request, with seconds where they are known."""

    @abstractmethod
    def chains(self, request: Request, machine: Machine) -> Iterator[ExactChain]:
        """Yield the chains that may be worth running, for a request that is not empty."""

    def refuses(self, request: Request) -> str | None:
        """Return the reason why this strategy is not for an exact request, or None."""
        return None

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        if self.baseline:
            return super().propose(request, machine)
        found: Iterable[Candidate] = [Candidate(self.family, self.name)]
        if self.name == SCHEME:
            found = map(self.candidate, self.chains(request, machine))
        runnable = [one for one in found if self.can_run(one, request, machine) is None]
        return [self.proposal(one, request, machine) for one in runnable]

    @property
    def source_kinds(self) -> tuple[type[Any], ...]:
        return (ExactChain,) if self.name == SCHEME else ()

    def source_of(self, key: str, request: Request) -> Source | None:
        return None if request.ring is None or not self.source_kinds else restored_chain(key, request.ring)

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        if request.structures != PLAIN:
            return "it is no exact product of plain matrices"
        if reason := self.refuses(request):
            return reason
        try:
            if not request.is_empty:
                self.core(candidate, request, machine)
        except PlanError as error:
            return str(error)
        return None

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`; without seconds if nothing is known of the device or the strategy."""
        return self.priced(self.core(candidate, request, machine), candidate, request, machine)

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        return 0 if request.is_empty else int(self.core(candidate, request, machine).workspace(machine.threads))


def chain_of(candidate: Candidate) -> ExactChain | None:
    """Return the levels of a candidate; None for a product without levels."""
    return candidate.source if isinstance(candidate.source, ExactChain) else None


def max_abs_of(request: Request) -> int:
    """Return the largest magnitude of an entry: the stated one, or that of the dtype."""
    if request.dtype == BITS:
        return 1
    if request.max_abs is not None:
        return request.max_abs
    bits = 8 * request.storage.itemsize
    return 1 << (bits - 1) if request.storage.kind == "i" else (1 << bits) - 1

"""Base class of the strategies of products by factored matrices on every device."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ...errors import PlanError
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Parameters, Proposal, Strategy
from ..request import Layout, Request
from ..structure import DENSE as PLAIN
from .chain import FactorChain
from .executor import Product, StructuredExecutor
from .rewrites import DENSE, REWRITES, WIDENED, rewritten

FAMILY = "structured"

STRIDED, TILED, GATHER, TRANSPOSED, DECODE = "strided", "tiled", "gather", "transposed", "decode"
"""Strategies; strided is the baseline of every device, the vendor's batched products on views."""

NATURAL_ONLY = "the outputs of this matrix are in block order; choose the strategy strided"


@dataclass(frozen=True)
class StructuredStrategy(Strategy):
    """Proposals, refusals common to every device, and candidates without sources.

    Its requests have a factored A, and plain B and C.
    """

    family: str = FAMILY

    @abstractmethod
    def device_reason(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        """Return the reason why the device cannot run a candidate for such a request, or None."""

    @abstractmethod
    def product(self, candidate: Candidate, request: Request, machine: Machine) -> Product:
        """Return the product by the factors, or by the rewritten ones."""

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        structure, rewrite = chain_in(request), None
        if self.name in REWRITES:
            rewrite = partial(rewritten, structure=structure, rewrite=self.name)
        product = self.product(candidate, request, machine)
        return StructuredExecutor(request, structure, product, self.workspace(candidate, request, machine), rewrite)

    def settings(self, request: Request) -> Iterable[Parameters]:
        """Return the parameters of the candidates, the preferred ones first."""
        return ((),)

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """Yield the candidates of a request, the preferred ones first, whether they can run or not."""
        return (Candidate(self.family, self.name, None, parameters) for parameters in self.settings(request))

    def multiplies(self, request: Request) -> bool:
        """Return whether the operands are those of this strategy."""
        first, second, third = request.structures
        return isinstance(first, FactorChain) and second is third is PLAIN

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        """See `Strategy.propose`; if no candidate can run, the first is proposed, to be refused with a reason."""
        if not self.multiplies(request):
            return []
        candidates = list(self.candidates(request))
        known = [one for one in candidates if not self.can_run(one, request, machine)]
        if self.baseline or not known:
            return [Proposal(0.0, one) for one in known or candidates[:1]]
        return [self.proposal(one, request, machine) for one in known]

    def restore(self, key: str, parameters: Parameters, request: Request) -> Candidate | None:
        """See `Strategy.restore`: None if the parameters are not those of a current candidate."""
        known = not key and self.multiplies(request) and parameters in self.settings(request)
        return Candidate(self.family, self.name, None, parameters) if known else None

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        if not self.multiplies(request):
            return "no operand is a factored matrix"
        structure = chain_in(request)
        if request.batch:
            return "products by factors take one matrix X; join the leading sizes of a batch"
        if Layout.SCATTERED in request.layouts:
            return "X must be stored with contiguous rows or columns; pass a contiguous copy of X"
        if reason := self.device_reason(candidate, request, machine):
            return reason
        if self.name == WIDENED and all(one.d == 1 for one in structure.patterns):
            return "d = 1: nothing is to be widened"
        if self.name == DENSE and (extra := structure.extra_elements * request.itemsize) > request.max_extra_bytes:
            return f"the dense matrix takes {extra} bytes more than the factors; allow it with max_extra_bytes"
        return None


def chain_in(request: Request) -> FactorChain:
    """Return the structure of A, or raise PlanError if A is no factored matrix."""
    structure = request.structures[0]
    if not isinstance(structure, FactorChain):
        raise PlanError("no operand is a factored matrix")
    return structure


def batch_first(request: Request) -> tuple[bool, bool]:
    """Return whether X and the result are batch-first."""
    given, wanted = (layout is Layout.COLUMNS for layout in request.layouts[1:])
    return given, wanted

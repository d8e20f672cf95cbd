"""The common part of GPU strategies that run a product without a scheme, or a named scheme in one pass."""

from __future__ import annotations

from collections.abc import Iterable

from ..planning.strategy import Candidate, Parameters, Source
from ..request import Request
from .flat_pool import FlatChain
from .given import GivenProgram
from .pool import restored_levels

FAMILY = "dense"


class RunsNamedChains:
    """The part of a strategy that runs the product without a scheme, or a chain or program in one pass."""

    name: str

    def candidates_of(self, source: Source) -> Iterable[Candidate]:
        """See `Strategy.candidates_of`."""
        if isinstance(source, FlatChain | GivenProgram):
            yield Candidate(FAMILY, self.name, source)

    def restore(self, key: str, parameters: Parameters, request: Request) -> Candidate | None:
        """See `Strategy.restore`."""
        if not key:
            return Candidate(FAMILY, self.name)
        levels = restored_levels(key)
        return None if levels is None else Candidate(FAMILY, self.name, FlatChain(levels))

"""Base class of the strategies of block low-rank products on every device."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...errors import PlanError
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Parameters, Proposal, Source, Stage
from ..request import Layout, Request
from ..structure import DENSE as PLAIN
from .block_low_rank import BlockLowRank
from .steps import Step, steps_of

FAMILY = "block-low-rank"

STRIDED, DENSE = "strided", "dense"
"""The strategies of every device: GEMMs on views, and the whole matrix."""


def structure_of(request: Request) -> BlockLowRank | None:
    """Return the block low-rank structure of A if B and C are plain matrices; else None."""
    first, second, third = request.structures
    return first if isinstance(first, BlockLowRank) and second is third is PLAIN else None


def structure_in(request: Request) -> BlockLowRank:
    """Return the structure of A of a request that `can_run` accepts.

    Raises:
        PlanError: A is not block low-rank.
    """
    structure = structure_of(request)
    if structure is None:
        raise PlanError("no operand is block low-rank")
    return structure


def known(seconds: float) -> float | None:
    """Return the seconds, or None for NaN."""
    return None if math.isnan(seconds) else seconds


def moved_elements(step: Step, n: int) -> int:
    """Return the elements that a step reads and writes: its weights, its source and its target."""
    return step.parameters + step.count * (step.m + step.k) * n


@dataclass(frozen=True)
class BlockLowRankStrategy(ABC):
    """Refusals common to every device, and a candidate without a source for every setting of the parameters."""

    name: str
    device: str
    baseline: bool = False
    family: str = FAMILY
    version: int = 1

    def candidates_of(self, source: Source) -> Iterable[Candidate]:
        """See `Strategy.candidates_of`: none."""
        return ()

    @property
    def settings(self) -> Sequence[Parameters]:
        """Return the parameters of the candidates, the preferred ones first."""
        return ((),)

    def restore(self, key: str, parameters: Parameters, request: Request) -> Candidate | None:
        """See `Strategy.restore`."""
        if key or parameters not in self.settings or structure_of(request) is None:
            return None
        return Candidate(FAMILY, self.name, None, parameters)

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        """See `Strategy.propose`; candidates that cannot run are proposed too, to be refused with a reason."""
        if structure_of(request) is None:
            return []
        found = [Candidate(FAMILY, self.name, None, parameters) for parameters in self.settings]
        if self.baseline or self.can_run(found[0], request, machine):
            return [Proposal(0.0, found[0])]
        return [Proposal(self._price(candidate, request, machine) * (1 - 1e-9), candidate) for candidate in found]

    def _price(self, candidate: Candidate, request: Request, machine: Machine) -> float:
        """Predicted seconds; NaN where they are not known."""
        seconds = [stage.seconds for stage in self.predict(candidate, request, machine)]
        return sum(math.nan if one is None else one for one in seconds)

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        """See `Strategy.can_run`."""
        structure = structure_of(request)
        if structure is None:
            return "no operand is block low-rank"
        if request.batch:
            return "block low-rank products take one matrix X; join the leading sizes of a batch"
        if Layout.SCATTERED in request.layouts:
            return "X must be stored with contiguous rows or columns; pass a contiguous copy of X"
        if reason := self.device_reason(structure, request, machine):
            return reason
        if self.name == DENSE and (extra := structure.extra_elements * request.itemsize) > request.max_extra_bytes:
            return f"the dense matrix takes {extra} bytes more than the factors; allow it with max_extra_bytes"
        return None

    @abstractmethod
    def device_reason(self, structure: BlockLowRank, request: Request, machine: Machine) -> str | None:
        """Return the reason why the device cannot run this strategy, or None."""

    def is_priced(self, request: Request) -> bool:
        """Return whether the seconds of the steps are predicted."""
        return self.name in (STRIDED, DENSE)

    @abstractmethod
    def step_seconds(self, step: Step, request: Request, machine: Machine) -> float:
        """Return the predicted seconds of one step; NaN if unknown."""

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`; a strategy that was not measured has no seconds."""
        if 0 in request.shape:
            return []
        structure, n = structure_in(request), request.n
        steps = (Step(1, structure.rows, structure.cols),) if self.name == DENSE else steps_of(structure)
        found = []
        for step in steps:
            seconds = known(self.step_seconds(step, request, machine)) if self.is_priced(request) else None
            moved = moved_elements(step, n) * request.itemsize
            found.append(Stage(step.name, 2.0 * step.parameters * n, moved, seconds, (step.m, step.k, n)))
        return found

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: the results between steps, or the dense matrix; an upper bound."""
        if 0 in request.shape:
            return 0
        structure = structure_in(request)
        if self.name == DENSE:
            return structure.rows * structure.cols * request.itemsize
        return sum(structure.intermediates()) * padded(request.n) * request.itemsize


def padded(n: int) -> int:
    """Round n up to the columns of the buffers between steps: whole 16 bytes in every dtype, for tensor cores."""
    return -(-n // 8) * 8

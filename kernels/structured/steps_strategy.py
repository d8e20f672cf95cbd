"""Base class of the strategies of block low-rank products on every device."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...errors import PlanError
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Parameters, Stage
from ..request import Request
from .block_low_rank import BlockLowRank
from .chain import FactorChain
from .rewrites import DENSE
from .steps import FactorStep, steps_of
from .strategy import StructuredStrategy, known

FAMILY = "block-low-rank"

STRIDED = "strided"
"""The strategy of every device: GEMMs on views."""


def structure_in(request: Request) -> BlockLowRank:
    """Return the structure of A of a request that `can_run` accepts.

    Raises:
        PlanError: A is not block low-rank.
    """
    structure = request.structures[0]
    if not isinstance(structure, BlockLowRank):
        raise PlanError("no operand is block low-rank")
    return structure


def moved_elements(step: FactorStep, n: int) -> int:
    """Return the elements that a step reads and writes: its weights, its source and its target."""
    return step.parameters + step.count * (step.m + step.k) * n


@dataclass(frozen=True)
class BlockLowRankStrategy(StructuredStrategy):
    """A strategy whose steps are priced one by one, with a candidate for every setting of its parameters."""

    structures: ClassVar[type[FactorChain]] = BlockLowRank
    adjective: ClassVar[str] = "block low-rank"

    name: str
    device: str
    baseline: bool = False
    family: str = FAMILY
    version: int = 1

    @property
    def settings(self) -> Sequence[Parameters]:
        """Return the parameters of the candidates, the preferred ones first."""
        return ((),)

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """See `StructuredStrategy`."""
        return (Candidate(FAMILY, self.name, None, parameters) for parameters in self.settings)

    def restore(self, key: str, parameters: Parameters, request: Request) -> Candidate | None:
        """See `Strategy.restore`."""
        return super().restore(key, parameters, request) if parameters in self.settings else None

    def is_priced(self, request: Request) -> bool:
        """Return whether the seconds of the steps are predicted."""
        return self.name in (STRIDED, DENSE)

    @abstractmethod
    def step_seconds(self, step: FactorStep, request: Request, machine: Machine) -> float:
        """Return the predicted seconds of one step; NaN if unknown."""

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`; a strategy that was not measured has no seconds."""
        if 0 in request.shape:
            return []
        structure, n = structure_in(request), request.n
        steps = (FactorStep(1, structure.rows, structure.cols),) if self.name == DENSE else steps_of(structure)
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

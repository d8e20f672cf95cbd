"""Fleets: searches of one target that are advanced together, launch by launch."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..schemes_db import Provenance, Scheme, Target
from ..schemes_db.algebra import naive
from ..schemes_db.factor import IntArray
from .runs.snapshot import Checkpointed

Goal = int | npt.NDArray[np.int32]
"""A score for all searches, or one for each."""

Stop = Callable[[], bool]
"""Function called between the parts of a search; True ends it."""

EMPTY = 1 << 30
"""The rank where there is no scheme."""


class TurnFleet(ABC):
    """Searches that are advanced together, launch by launch.

    Attributes:
        walkers: number of searches, or of schemes that are held.
        score: (walkers,) the lowest rank of each.
        roots: (walkers,) their numbers: none is a copy of another.
        flips, launches, seconds: totals.
    """

    STEPS: ClassVar[int]
    """Steps of a launch, of about a second."""
    RELATION: ClassVar[str] = ""
    """How finds came about."""

    score: npt.NDArray[np.signedinteger]

    def __init__(self, target: Target, walkers: int) -> None:
        self.target, self.walkers, self.roots = target, walkers, np.arange(walkers)
        self.flips, self.launches, self.seconds = 0, 0, 0.0

    def launch(self, steps: int, goal: Goal = 0) -> float:
        """Advance every search by about `steps` steps, or, on a GPU, to a score of `goal`; return the seconds."""
        begin = time.perf_counter()
        self._launch(steps, goal)
        self.launches += 1
        seconds = time.perf_counter() - begin
        self.seconds += seconds
        return seconds

    @abstractmethod
    def _launch(self, steps: int, goal: Goal) -> None:
        """See `launch`."""

    @property
    def flips_per_second(self) -> float:
        return self.flips / self.seconds if self.seconds else 0.0

    @abstractmethod
    def ranks(self) -> IntArray:
        """Return (walkers,): the rank of the scheme that `scheme` returns with `current`, EMPTY where there is none."""

    @abstractmethod
    def scheme(self, walker: int, *, current: bool = False, provenance: Provenance | None = None) -> Scheme:
        """Return the scheme of a search's score, or its current one, unchecked."""


class FoundFleet(TurnFleet, Checkpointed):
    """Searches without walks on the flip graph, which report schemes: those of a run, or of turns of `improve`.

    Attributes:
        score: the lowest rank that each search has found, at first that of the naive scheme.
    """

    FINDS: ClassVar[str] = ""
    """How the finds of a run came about, if not as those of a turn."""
    REMARK: ClassVar[str] = ""
    """What finds are numbered by, in their provenance."""
    COSTLY: ClassVar[bool] = False
    """True if finds take long to make: a run then stops between two of a round."""

    def __init__(self, target: Target, walkers: int) -> None:
        super().__init__(target, walkers)
        self._lowest: list[Scheme | None] = [None] * walkers
        self.score = np.full(walkers, len(target.terms), dtype=np.int64)

    @abstractmethod
    def find(self, steps: int, executor: Executor | None) -> Iterator[tuple[int, Scheme]]:
        """Advance every search by about `steps` steps; yield the schemes found, each with its number.

        Numbers are those of the searches, counted on from round to round if every round begins new ones.
        """

    def made(self, scheme: Scheme) -> Scheme:
        """Return the scheme of the target of a turn that follows from a find: itself, as a rule."""
        return scheme

    def _launch(self, steps: int, goal: Goal) -> None:
        with ThreadPoolExecutor(self.walkers) as threads:
            for number, found in self.find(steps, threads if self.walkers > 1 else None):
                scheme, search = self.made(found), number % self.walkers
                if scheme.rank < self.score[search]:
                    self._lowest[search], self.score[search] = scheme, scheme.rank
                if self.COSTLY:
                    break

    def ranks(self) -> IntArray:
        return np.full(self.walkers, EMPTY)

    def scheme(self, walker: int, *, current: bool = False, provenance: Provenance | None = None) -> Scheme:
        lowest = self._lowest[walker] or naive(self.target)
        return lowest if provenance is None else lowest.replace(provenance=provenance)

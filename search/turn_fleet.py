"""Fleets: searches of one target that are advanced together, launch by launch."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..schemes_db import Provenance, Scheme, Target
from ..schemes_db.algebra import naive

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

    def launch(self, steps: int) -> float:
        """Advance every search by about `steps` steps; return the seconds."""
        begin = time.perf_counter()
        self._launch(steps)
        self.launches += 1
        seconds = time.perf_counter() - begin
        self.seconds += seconds
        return seconds

    @abstractmethod
    def _launch(self, steps: int) -> None:
        """Advance every search by about `steps` steps."""

    @property
    def flips_per_second(self) -> float:
        return self.flips / self.seconds if self.seconds else 0.0

    @abstractmethod
    def ranks(self) -> npt.NDArray[np.int64]:
        """Return (walkers,): the rank of the scheme that `scheme` returns with `current`, EMPTY where there is none."""

    @abstractmethod
    def scheme(self, walker: int, *, current: bool = False, provenance: Provenance | None = None) -> Scheme:
        """Return the scheme of a search's score, or its current one, unchecked."""


class FoundFleet(TurnFleet):
    """Searches that report schemes from time to time: each has its lowest, at first the naive one."""

    def __init__(self, target: Target, walkers: int) -> None:
        super().__init__(target, walkers)
        self._lowest: list[Scheme | None] = [None] * walkers
        self.score = np.full(walkers, len(target.terms), dtype=np.int64)

    @abstractmethod
    def _advance(self, steps: int) -> Sequence[Sequence[Scheme]]:
        """Advance every search by about `steps` steps; return what each found."""

    def _launch(self, steps: int) -> None:
        for i, schemes in enumerate(self._advance(steps)):
            for scheme in schemes:
                if scheme.rank < self.score[i]:
                    self._lowest[i], self.score[i] = scheme, scheme.rank

    def ranks(self) -> npt.NDArray[np.int64]:
        return np.full(self.walkers, EMPTY)

    def scheme(self, walker: int, *, current: bool = False, provenance: Provenance | None = None) -> Scheme:
        lowest = self._lowest[walker] or naive(self.target)
        return lowest if provenance is None else lowest.replace(provenance=provenance)

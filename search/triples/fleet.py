"""Annealers on the threads of this processor, with the interface of a fleet of walkers that turns of `improve` use."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from ...schemes_db import Provenance, Scheme, Target
from ...schemes_db.algebra import naive
from .annealer import Annealer, least_rank

STEPS = 100_000
"""Steps of an annealer in a launch, of about a second."""


class TripleFleet:
    """Annealers of one format, one a thread; after a find all aim below it.

    Attributes:
        walkers: number of annealers.
        score: (walkers,) the lowest rank that each found; the naive one at first.
        roots: (walkers,) their numbers: none is a copy of another.
        flips: always 0.
        launches, seconds: totals.

    Args:
        rank: the rank to aim at.
        integral: whether schemes are over Z, else over Z2.

    Raises:
        PlanError: the target has no side of 2, or the rank is too low.
    """

    flips, flips_per_second = 0, 0.0

    def __init__(self, target: Target, rank: int, integral: bool, *, seed: int, jobs: int) -> None:
        self.target, self.walkers = target, jobs
        self._annealers = [Annealer(target, rank, integral, seed, index) for index in range(jobs)]
        self._lowest: list[Scheme | None] = [None] * jobs
        self.score = np.full(jobs, len(target.terms), dtype=np.int64)
        self.roots = np.arange(jobs)
        self.launches, self.seconds = 0, 0.0

    def launch(self, steps: int) -> float:
        """Advance every annealer by about `steps` steps; return the seconds."""
        begin = time.perf_counter()
        with ThreadPoolExecutor(self.walkers) as threads:
            found = list(threads.map(lambda annealer: annealer.advance(steps), self._annealers))
        before = self.score.min()
        for i, schemes in enumerate(found):
            for scheme in schemes:
                if scheme.rank < self.score[i]:
                    self._lowest[i], self.score[i] = scheme, scheme.rank
        if self.score.min() < before:
            for annealer in self._annealers:
                annealer.aim(max(int(self.score.min()) - 1, least_rank(self.target)))
        self.launches += 1
        seconds = time.perf_counter() - begin
        self.seconds += seconds
        return seconds

    def ranks(self) -> npt.NDArray[np.int64]:
        """Return (walkers,): a large number each, as an annealer has no scheme but its lowest."""
        return np.full(self.walkers, 1 << 30)

    def scheme(self, walker: int, *, current: bool = False, provenance: Provenance | None = None) -> Scheme:
        """Return the scheme of an annealer's score, unchecked; `current` makes no difference."""
        lowest = self._lowest[walker]
        if lowest is None:
            lowest = naive(self.target)
        return lowest if provenance is None else lowest.replace(provenance=provenance)

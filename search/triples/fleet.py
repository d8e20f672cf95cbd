"""Annealers on the threads of this processor, for turns of `improve`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ...schemes_db import Scheme, Target
from ..turn_fleet import FoundFleet
from .annealer import Annealer, least_rank


class TripleFleet(FoundFleet):
    """Annealers of one format, one a thread; after a find all aim below it.

    Args:
        rank: the rank to aim at.
        integral: whether schemes are over Z, else over Z2.

    Raises:
        PlanError: the target has no side of 2, or the rank is too low.
    """

    STEPS, RELATION = 100_000, "annealing of Strassen triples"

    def __init__(self, target: Target, rank: int, integral: bool, *, seed: int, jobs: int) -> None:
        super().__init__(target, jobs)
        self._annealers = [Annealer(target, rank, integral, seed, index) for index in range(jobs)]

    def _advance(self, steps: int) -> Sequence[Sequence[Scheme]]:
        with ThreadPoolExecutor(self.walkers) as threads:
            found = list(threads.map(lambda annealer: annealer.advance(steps), self._annealers))
        if lowest := min((scheme.rank for schemes in found for scheme in schemes), default=0):
            for annealer in self._annealers:
                annealer.aim(max(min(lowest, int(self.score.min())) - 1, least_rank(self.target)))
        return found

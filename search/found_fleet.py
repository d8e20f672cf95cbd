"""A fleet without walkers: searches that report schemes of one target from time to time, for turns of `improve`."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..schemes_db import Provenance, Scheme, Target
from ..schemes_db.algebra import naive


class FoundFleet:
    """Searches of one target, each with the lowest scheme that it has found.

    Attributes:
        walkers: number of searches.
        score: (walkers,) the lowest rank that each found; the naive one at first.
        roots: (walkers,) their numbers: none is a copy of another.
        flips: always 0.
        launches, seconds: totals.
    """

    flips, flips_per_second = 0, 0.0

    def __init__(self, target: Target, walkers: int) -> None:
        self.target, self.walkers = target, walkers
        self._lowest: list[Scheme | None] = [None] * walkers
        self.score = np.full(walkers, len(target.terms), dtype=np.int64)
        self.roots = np.arange(walkers)
        self.launches, self.seconds = 0, 0.0

    def _advance(self, steps: int) -> Sequence[Sequence[Scheme]]:
        """Advance every search by about `steps` steps; return what each found."""
        raise NotImplementedError

    def launch(self, steps: int) -> float:
        """Advance every search by about `steps` steps; return the seconds."""
        begin = time.perf_counter()
        for i, schemes in enumerate(self._advance(steps)):
            for scheme in schemes:
                if scheme.rank < self.score[i]:
                    self._lowest[i], self.score[i] = scheme, scheme.rank
        self.launches += 1
        seconds = time.perf_counter() - begin
        self.seconds += seconds
        return seconds

    def ranks(self) -> npt.NDArray[np.int64]:
        """Return (walkers,): a large number each, as a search has no scheme but its lowest."""
        return np.full(self.walkers, 1 << 30)

    def scheme(self, walker: int, *, current: bool = False, provenance: Provenance | None = None) -> Scheme:
        """Return the scheme of a search's score, unchecked; `current` makes no difference."""
        lowest = self._lowest[walker]
        if lowest is None:
            lowest = naive(self.target)
        return lowest if provenance is None else lowest.replace(provenance=provenance)

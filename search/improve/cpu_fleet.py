"""Walkers on the threads of this processor, with the interface of a GPU's fleet that turns use."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from ...schemes_db import Provenance, Scheme
from ...schemes_db.factor import IntArray
from ..flipgraph.policy import Policy
from ..flipgraph.walkers import Walker, WalkTerms, make_walker, pack_start
from ..turn_fleet import EMPTY, Goal, TurnFleet

PATIENCE = 16_000_000
"""Steps without a lower rank after which a walk ends.

A compromise: of 24 walks of 100 M steps from projections of one 6x6x6:153 eight reached 5x6x6:130, five of them within
10 M steps, the last after 90 M; several gained again after 30 M steps and more without a gain.
"""

SCOUTS, A_START, SHORT, LONGER = 64, 4, 600_000, 2_000_000
"""The first walks, four a start and at most 64, are from random starts and of short patience; half as many with a
longer one follow.

60 M steps from cuts of compositions, three seeds each: without them 7x9x9 came to 398, 399 and 398, 6x7x9 three times
to 272, and 5x6x6 from 6x6x6:153 to 139, 130 and 130; with them to 398, 398 and 396, to 268, 266 and 266, and three
times to 130.
"""

MEMBERS = 128
"""Maximum number of found schemes that walks continue from."""

LOWEST = 0.5
"""Share of the walks that begin at a scheme of the lowest rank; the same share of the others begins at the next, etc.

From 5x6x6:130 with a border (rank 160) one of 95 independent walks reached 158, while walks that began where others
ended reached 155 after 84 s of two cores, with 0.6 of them at the lowest rank and 0.2 one above. The rule here, which
has no such limit, was not compared with that one.
"""


@dataclass
class _Walk:
    """A walk, the rank of its start, its patience, its lowest rank, and the steps since that last decreased."""

    walker: Walker
    start: int
    patience: int
    lowest: int
    idle: int = 0


class CpuFleet(TurnFleet):
    """Walks of one target, `jobs` at a time, each until it stagnates; found schemes are starts of later ones.

    A processor advances few walks fast, a GPU many walks slowly: here walks follow one another, and a scheme
    replaces one of higher rank, where a GPU's fleet selects.

    MEMBERS more schemes than starts are held; those of the starts come first, and the score is EMPTY where there is
    none yet.

    Args:
        starts: schemes of one target that fit the walk.
        walk: a name of `walkers.walk_names`, also with swaps.
        jobs: threads.
    """

    def __init__(self, starts: Sequence[Scheme], walk: str, policy: Policy, *, seed: int, jobs: int) -> None:
        super().__init__(starts[0].target, len(starts) + MEMBERS)
        self.score = np.full(self.walkers, EMPTY, dtype=np.int64)
        self.score[: len(starts)] = [scheme.rank for scheme in starts]
        self._terms: list[WalkTerms] = [pack_start(walk, self.target, scheme) for scheme in starts]
        self._walk, self._policy, self._seed, self._jobs = walk, policy, seed, jobs
        self._rng, self._starts, self._begun = np.random.default_rng(seed), len(starts), 0
        self._active: list[_Walk] = []
        self._fresh = np.zeros(self.walkers, dtype=bool)

    def _launch(self, steps: int, goal: Goal) -> None:
        self._active += [self._next() for _ in range(self._jobs - len(self._active))]
        steps = min(steps, *(one.patience for one in self._active))
        before = sum(one.walker.flips for one in self._active)
        with ThreadPoolExecutor(self._jobs) as threads:
            list(threads.map(lambda one: one.walker.advance(0, steps), self._active))
        self.flips += sum(one.walker.flips for one in self._active) - before
        self._fresh[:] = False
        for one in self._active:
            self._look_at(one, steps)
        self._active = [one for one in self._active if one.idle < one.patience]

    def _next(self) -> _Walk:
        """Return a new walk: first from random starts, then from schemes of a random rank, the lower the likelier."""
        scouts = min(SCOUTS, A_START * self._starts)
        patience = SHORT if self._begun < scouts else LONGER if 2 * self._begun < 3 * scouts else PATIENCE
        if self._begun < scouts:
            terms = self._terms[int(self._rng.integers(self._starts))]
        else:
            held = self.score[: len(self._terms)]
            ranks = np.unique(held)
            level = min(int(self._rng.geometric(LOWEST)), len(ranks)) - 1
            terms = self._terms[int(self._rng.choice(np.flatnonzero(held == ranks[level])))]
        walker = make_walker(self._walk, terms, self._seed, self._begun, self._policy)
        self._begun += 1
        return _Walk(walker, terms.rank, patience, walker.rank)

    def _look_at(self, one: _Walk, steps: int) -> None:
        """Store the scheme of a walk that is below all others, or that ends below its start."""
        rank = one.walker.rank
        one.idle = 0 if rank < one.lowest else one.idle + steps
        if (rank < one.lowest and rank < self.score.min()) or (one.idle >= one.patience and rank < one.start):
            place = self._place(rank)
            if place >= 0:
                self._terms[place : place + 1] = [one.walker.terms()]  # appended if the place is a new one
                self.score[place], self._fresh[place] = rank, True
        one.lowest = rank

    def _place(self, rank: int) -> int:
        """Return a place: a free one, or that of a random find of the highest rank; -1 if all have lower ranks."""
        if len(self._terms) < self.walkers:
            return len(self._terms)
        found = self.score[self._starts :]
        worst = np.flatnonzero(found == found.max())
        return self._starts + int(self._rng.choice(worst)) if found.max() >= rank else -1

    def ranks(self) -> IntArray:
        """Return (walkers,): the ranks of the schemes that the last launch stored, EMPTY for the others."""
        return np.where(self._fresh, self.score, EMPTY)

    def scheme(self, walker: int, *, current: bool = False, provenance: Provenance | None = None) -> Scheme:
        return self._terms[walker].to_scheme(provenance)

"""Where walks start and how far they go: the plan of a run between its rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .fleet import Fleet
from .snapshot import Arrays
from .walker import Terms


class PoolPlan(NamedTuple):
    """How schemes are gathered between rounds, and how long walks from them go on.

    Attributes:
        large: schemes of a rank that are asked for near the goal; 0 for no pools, every walk for itself.
        small: schemes of a rank that are enough far from the goal.
        near: ranks above the goal that count as near.
        patience: rounds after which a walk without a gain starts anew from its pool.
        stall: rounds without a find after which every other walk goes to enlarge the pool.
        turn: without pools, steps after which a walk that found nothing tries the next start.
        leave: rounds without a lower rank after which a ladder goes on to its next format.
        passed: schemes that go on to the next format; with so many at the goal it goes on at once.
    """

    large: int = 48
    small: int = 4
    near: int = 5
    patience: int = 8
    stall: int = 200
    turn: int = 20_000_000
    leave: int = 500
    passed: int = 8


ALONE = PoolPlan(large=0)
"""The plan of walks without pools."""


class Strategy(Protocol):
    """Sends walks and takes what they bring, between rounds, in walk order and by draws of its own."""

    def begin(self, fleet: Fleet) -> None:
        """Send all walks for the first time."""

    def goals(self) -> list[int]:
        """For every walk the rank at which it stops in the next round."""

    def root(self, walk: int) -> int:
        """Which of the run's starts a walk comes from."""

    def after_round(self, fleet: Fleet) -> None:
        """Take what the walks found, and send walks anew."""

    def members(self, fleet: Fleet) -> Iterator[tuple[Terms, int]]:
        """What is worth going on from in a larger format, best first, each with the start it comes from."""

    def idle(self) -> bool:
        """Whether nothing has come for so long that a ladder goes on to its next format."""

    def sizes(self) -> dict[int, int]:
        """How many schemes of which rank are gathered."""

    def to_arrays(self) -> Arrays:
        """All that changes, for a checkpoint."""

    def take_arrays(self, arrays: Arrays) -> None:
        """Put back what `to_arrays` gave."""


class Alone:
    """Every walk for itself, from its start down to the goal; one that gets there goes to the next start.

    With `gather` what walks bring is kept, to go on from in a larger format.
    """

    def __init__(
        self, starts: Sequence[Terms], walks: int, goal: int, steps: int, plan: PoolPlan, *, gather: bool = False
    ) -> None:
        self.plan, self.goal = plan, goal
        self._turn = max(1, plan.turn // steps)
        self._starts, self._gather = list(starts), gather
        self._from = [walk % len(starts) for walk in range(walks)]
        self._ages = [0] * walks
        self._turns = walks
        self._lowest, self._still = min(terms.rank for terms in starts), 0
        self._reached = self._lowest <= goal
        self._gathered: list[tuple[Any, int]] = []

    def begin(self, fleet: Fleet) -> None:
        if len(self._starts) > 1:
            for walk, root in enumerate(self._from):
                fleet.send(walk, self._starts[root])

    def goals(self) -> list[int]:
        return [self.goal] * len(self._from)

    def root(self, walk: int) -> int:
        return self._from[walk]

    def after_round(self, fleet: Fleet) -> None:
        ranks = fleet.ranks
        self._still = 0 if min(ranks) < self._lowest else self._still + 1
        self._lowest = min(self._lowest, *ranks)
        for walk, rank in enumerate(ranks):
            self._ages[walk] += 1
            if rank <= self.goal and self._gather:
                self._gathered.append((fleet.terms(walk), self._from[walk]))
            if rank <= self.goal or (self._ages[walk] >= self._turn and len(self._starts) > 1):
                self._send_on(fleet, walk)

    def _send_on(self, fleet: Fleet, walk: int) -> None:
        self._ages[walk] = 0
        if len(self._starts) == 1:
            fleet.rewind(walk)
            return
        self._from[walk] = self._turns % len(self._starts)
        self._turns += 1
        fleet.send(walk, self._starts[self._from[walk]])

    def members(self, fleet: Fleet) -> Iterator[tuple[Terms, int]]:
        """What reached the goal, then where walks stand, then the starts."""
        yield from self._gathered
        ranks = fleet.ranks
        for walk in sorted(range(len(ranks)), key=lambda walk: ranks[walk]):
            yield fleet.terms(walk), self._from[walk]
        yield from ((terms, root) for root, terms in enumerate(self._starts))

    def idle(self) -> bool:
        return self._reached or len(self._gathered) >= self.plan.passed or self._still >= self.plan.leave

    def sizes(self) -> dict[int, int]:
        return dict(sorted(Counter(terms.rank for terms, _ in self._gathered).items()))

    def to_arrays(self) -> Arrays:
        arrays: Arrays = {f"words {i}": terms.words for i, (terms, _) in enumerate(self._gathered)}
        arrays["roots"] = np.array([root for _, root in self._gathered], dtype=np.int64)
        arrays["numbers"] = np.array([self._turns, self._lowest, self._still], dtype=np.int64)
        arrays["walks"] = np.array([self._from, self._ages], dtype=np.int64)
        return arrays

    def take_arrays(self, arrays: Arrays) -> None:
        self._turns, self._lowest, self._still = arrays["numbers"].tolist()
        self._from, self._ages = arrays["walks"].tolist()
        kind: Any = type(self._starts[0])
        self._gathered = [
            (kind(self._starts[0].target, arrays[f"words {i}"]), root)
            for i, root in enumerate(arrays["roots"].tolist())
        ]

"""Strategies of a run: the starts and goals of its walks, updated between rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from ..flipgraph.walkers import WalkTerms
from ..terms.packed import Vector
from .engine import Session
from .plan import PoolPlan
from .snapshot import Arrays


class SearchStrategy(Protocol):
    """Interface for sending walks to starts and collecting finds, between rounds, in walk order, with its own draws."""

    def begin(self, session: Session) -> None:
        """Send all walks for the first time."""

    def goals(self) -> Vector:
        """Return (walkers,): the rank at which each walk stops in the next round."""

    def roots(self, walks: Vector) -> Vector:
        """Return the indices of the starts of some walks; -1 where it may be any of them."""

    def after_round(self, session: Session) -> None:
        """Collect the finds of the walks, and send walks to new starts."""

    def members(self, session: Session) -> Iterator[tuple[WalkTerms, int]]:
        """Yield the schemes to continue from in a larger format, best first, each with the index of its start."""

    def idle(self) -> bool:
        """Return whether a ladder should proceed to its next format: enough schemes, or no gain for too long."""

    def fruitless(self) -> bool:
        """Return whether the goal was not reached, and other starts should be searched in the format before."""

    def sizes(self) -> dict[int, int]:
        """Return the number of stored schemes of each rank."""

    def to_arrays(self) -> Arrays:
        """Return all mutable state, for a checkpoint."""

    def take_arrays(self, arrays: Arrays) -> None:
        """Restore the state of `to_arrays`."""


class IndependentWalks:
    """Strategy of independent walks from a start to the goal; a walk that reaches it continues from the next start.

    With `gather` the schemes at the goal are stored, to continue from in a larger format.
    """

    def __init__(
        self, starts: Sequence[WalkTerms], walkers: int, goal: int, steps: int, plan: PoolPlan, *, gather: bool = False
    ) -> None:
        self.plan, self.goal = plan, goal
        self._turn = max(1, plan.turn // steps)
        self._starts, self._gather = list(starts), gather
        self._from = np.arange(walkers) % len(starts)
        self._ages = np.zeros(walkers, dtype=np.int64)
        self._turns = walkers
        self._lowest, self._still = min(terms.rank for terms in starts), 0
        self._reached = self._lowest <= goal
        self._gathered: list[tuple[Any, int]] = []

    def begin(self, session: Session) -> None:
        if len(self._starts) > 1:
            session.send(np.arange(len(self._from)), self._starts, self._from)

    def goals(self) -> Vector:
        return np.full(len(self._from), self.goal)

    def roots(self, walks: Vector) -> Vector:
        return self._from[walks]

    def after_round(self, session: Session) -> None:
        ranks = session.ranks
        lowest = int(ranks.min())
        self._still = 0 if lowest < self._lowest else self._still + 1
        self._lowest = min(self._lowest, lowest)
        self._ages += 1
        reached = ranks <= self.goal
        if self._gather:
            taken = session.chosen(np.flatnonzero(reached))
            self._gathered += zip(session.terms(taken), self._from[taken].tolist(), strict=True)
        if len(self._starts) == 1:
            done = np.flatnonzero(reached)
            session.rewind(done)
        else:
            done = np.flatnonzero(reached | (self._ages >= self._turn))
            self._from[done] = (self._turns + np.arange(len(done))) % len(self._starts)
            self._turns += len(done)
            session.send(done, self._starts, self._from[done])
        self._ages[done] = 0

    def members(self, session: Session) -> Iterator[tuple[WalkTerms, int]]:
        """Yield the schemes that reached the goal, then the lowest of the walks by rank, then the starts."""
        yield from self._gathered
        for walk in np.argsort(session.ranks, kind="stable")[:, None]:
            yield session.terms(walk)[0], int(self._from[walk[0]])
        yield from ((terms, root) for root, terms in enumerate(self._starts))

    def idle(self) -> bool:
        return self._reached or len(self._gathered) >= self.plan.passed or self._still >= self.plan.leave

    def fruitless(self) -> bool:
        return False

    def sizes(self) -> dict[int, int]:
        return dict(sorted(Counter(terms.rank for terms, _ in self._gathered).items()))

    def to_arrays(self) -> Arrays:
        arrays: Arrays = {f"words {i}": terms.words for i, (terms, _) in enumerate(self._gathered)}
        arrays["roots"] = np.array([root for _, root in self._gathered], dtype=np.int64)
        arrays["numbers"] = np.array([self._turns, self._lowest, self._still], dtype=np.int64)
        arrays["walks"] = np.stack([self._from, self._ages])
        return arrays

    def take_arrays(self, arrays: Arrays) -> None:
        self._turns, self._lowest, self._still = arrays["numbers"].tolist()
        self._from, self._ages = arrays["walks"].astype(np.int64)
        kind: Any = type(self._starts[0])
        self._gathered = [
            (kind(self._starts[0].target, arrays[f"words {i}"]), root)
            for i, root in enumerate(arrays["roots"].tolist())
        ]

"""Strategy for the walkers of a GPU: all start from all starts, and their inequivalent finds are collected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..flipgraph.walkers import WalkTerms
from ..terms.packed import Vector
from .distinct import DistinctPool
from .engine import Session
from .plan import LadderPlan
from .snapshot import Arrays
from .strategy import SearchStrategy


class PopulationWalks(SearchStrategy):
    """Strategy in which every walker searches the goal, independently or with selection, and restarts there.

    With `gather` inequivalent schemes at the goal are stored as starts of a larger format. Once there is one,
    `plan.linger` rounds are spent on more, then walks from those found supply the missing ones.
    """

    STATE = ("_lowest", "_still", "_rounds", "_first")

    def __init__(
        self, session: Session, starts: Sequence[WalkTerms], goal: int, plan: LadderPlan, gather: bool
    ) -> None:
        super().__init__(session, starts, goal, plan)
        self._gather, self._count = gather, len(starts)
        self._pool = DistinctPool()
        self._rounds, self._first = 0, -1
        self._reached = [terms for terms in starts if terms.rank <= goal]

    def roots(self, walks: Vector) -> Vector:
        """Return -1 (any start) if there are several: a walk that restarts draws a new one."""
        return np.full(len(walks), 0 if self._count == 1 else -1)

    def after_round(self) -> None:
        ranks = self._session.ranks
        self._note(ranks)
        self._rounds += 1
        reached = np.flatnonzero(ranks <= self.goal)
        if len(reached) and self._first < 0:
            self._first = self._rounds
        if self._gather:
            for terms in self._session.terms(self._session.chosen(reached)):
                if len(self._pool) >= self.plan.passed:
                    break
                self._pool.add(terms.to_scheme())
        self._session.rewind(reached)

    def members(self) -> Iterator[tuple[WalkTerms, int]]:
        """Yield the schemes that reached the goal; if there are none, the terms of the lowest walkers."""
        root = 0 if self._count == 1 else -1
        if self._reached:
            yield from ((terms, root) for terms in self._reached)
            return
        if len(self._pool):
            self._session.widen(self._pool, self.goal, self.plan.passed, max(1, self.plan.linger // 8))
        for scheme in self._pool.schemes:
            yield self._kind.from_scheme(scheme), root
        if not len(self._pool):
            order = np.argsort(self._session.ranks, kind="stable")[: self.plan.passed]
            yield from ((terms, root) for terms in self._session.terms(order))

    def idle(self) -> bool:
        lingered = 0 <= self._first <= self._rounds - self.plan.linger
        return bool(self._reached) or len(self._pool) >= self.plan.passed or lingered or self.fruitless()

    def fruitless(self) -> bool:
        return self._first < 0 and self._still >= self.plan.leave

    def sizes(self) -> dict[int, int]:
        return {self.goal: len(self._pool)} if len(self._pool) else {}

    def to_arrays(self) -> Arrays:
        schemes = enumerate(self._pool.schemes)
        return super().to_arrays() | {f"words {i}": self._kind.from_scheme(scheme).words for i, scheme in schemes}

    def take_arrays(self, arrays: Arrays) -> None:
        super().take_arrays(arrays)
        words = (arrays[f"words {i}"] for i in range(len(arrays) - len(self.STATE)))
        self._pool = DistinctPool(self._kind(self._target, one).to_scheme() for one in words)

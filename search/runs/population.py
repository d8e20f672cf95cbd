"""Strategy for the walkers of a GPU: all start from all starts, and their inequivalent finds are collected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..flipgraph.walkers import WalkTerms
from ..terms.packed import Vector
from .distinct import DistinctPool
from .engine import Session
from .plan import PoolPlan
from .snapshot import Arrays


@runtime_checkable
class Widening(Protocol):
    """A session that can find more schemes of a rank from given ones."""

    def widen(self, pool: DistinctPool, goal: int, count: int, launches: int) -> None:
        """Add schemes to a pool that walks from its members reach at the same rank, through higher ranks."""


class PopulationWalks:
    """Strategy in which every walker searches the goal, independently or with selection, and restarts there.

    With `gather` inequivalent schemes at the goal are stored as starts of a larger format. Once there is one,
    `plan.linger` rounds are spent on more, then walks from those found supply the missing ones.
    """

    def __init__(self, starts: Sequence[WalkTerms], walkers: int, goal: int, plan: PoolPlan, *, gather: bool) -> None:
        self.plan, self.goal, self._gather = plan, goal, gather
        self._kind: Any = type(starts[0])
        self._target, self._count = starts[0].target, len(starts)
        self._pool = DistinctPool()
        self._lowest, self._still, self._rounds, self._first = min(terms.rank for terms in starts), 0, 0, -1
        self._goals = np.full(walkers, goal)
        self._reached = [terms for terms in starts if terms.rank <= goal]

    def begin(self, session: Session) -> None:
        """Do nothing: the walks of a session start from all its starts in rotation."""

    def goals(self) -> Vector:
        return self._goals

    def roots(self, walks: Vector) -> Vector:
        """Return -1 (any start) if there are several: a walk that restarts draws a new one."""
        return np.full(len(walks), 0 if self._count == 1 else -1)

    def after_round(self, session: Session) -> None:
        ranks = session.ranks
        lowest = int(ranks.min())
        self._still = 0 if lowest < self._lowest else self._still + 1
        self._lowest = min(self._lowest, lowest)
        self._rounds += 1
        reached = np.flatnonzero(ranks <= self.goal)
        if len(reached) and self._first < 0:
            self._first = self._rounds
        if self._gather:
            for terms in session.terms(session.chosen(reached)):
                if len(self._pool) >= self.plan.passed:
                    break
                self._pool.add(terms.to_scheme())
        session.rewind(reached)

    def members(self, session: Session) -> Iterator[tuple[WalkTerms, int]]:
        """Yield the schemes that reached the goal; if there are none, the terms of the lowest walkers."""
        root = 0 if self._count == 1 else -1
        if self._reached:
            yield from ((terms, root) for terms in self._reached)
            return
        if len(self._pool) and isinstance(session, Widening):
            session.widen(self._pool, self.goal, self.plan.passed, max(1, self.plan.linger // 8))
        for scheme in self._pool.schemes:
            yield self._kind.from_scheme(scheme), root
        if not len(self._pool):
            order = np.argsort(session.ranks, kind="stable")[: self.plan.passed]
            yield from ((terms, root) for terms in session.terms(order))

    def idle(self) -> bool:
        lingered = 0 <= self._first <= self._rounds - self.plan.linger
        return bool(self._reached) or len(self._pool) >= self.plan.passed or lingered or self.fruitless()

    def fruitless(self) -> bool:
        return self._first < 0 and self._still >= self.plan.leave

    def sizes(self) -> dict[int, int]:
        return {self.goal: len(self._pool)} if len(self._pool) else {}

    def to_arrays(self) -> Arrays:
        arrays: Arrays = {
            f"words {i}": self._kind.from_scheme(scheme).words for i, scheme in enumerate(self._pool.schemes)
        }
        arrays["numbers"] = np.array([self._lowest, self._still, self._rounds, self._first], dtype=np.int64)
        return arrays

    def take_arrays(self, arrays: Arrays) -> None:
        self._lowest, self._still, self._rounds, self._first = arrays["numbers"].tolist()
        words = (arrays[f"words {i}"] for i in range(sum(name.startswith("words ") for name in arrays)))
        self._pool = DistinctPool(self._kind(self._target, one).to_scheme() for one in words)

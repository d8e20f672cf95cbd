"""Strategies of a run: the starts and goals of its walks, updated between rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..flipgraph.walkers import WalkTerms
from ..terms.packed import Vector
from .distinct import DistinctPool
from .engine import Session, SteeredSession
from .plan import LadderPlan
from .snapshot import Arrays, Checkpointed


class SearchStrategy(Checkpointed, ABC):
    """Sends walks to starts and collects finds, between rounds, in walk order, with its own draws.

    Args:
        session: the walks.
        starts: terms of one target.
        goal: the rank wanted, at which a walk stops.
    """

    def __init__(self, session: Session, starts: Sequence[WalkTerms], goal: int, plan: LadderPlan) -> None:
        self._session, self.plan, self.goal = session, plan, goal
        self._kind: Any = type(starts[0])
        self._target = starts[0].target
        self._lowest, self._still = min(terms.rank for terms in starts), 0

    @abstractmethod
    def roots(self, walks: Vector) -> Vector:
        """Return the indices of the starts of some walks; -1 where it may be any of them."""

    @abstractmethod
    def after_round(self) -> None:
        """Collect the finds of the walks, and send walks to new starts."""

    @abstractmethod
    def members(self) -> Iterator[tuple[WalkTerms, int]]:
        """Yield the schemes to continue from in a larger format, best first, each with the index of its start."""

    @abstractmethod
    def idle(self) -> bool:
        """Return whether a ladder should proceed to its next format: enough schemes, or no gain for too long."""

    def fruitless(self) -> bool:
        """Return whether the goal was not reached, and other starts should be searched in the format before."""
        return False

    @abstractmethod
    def sizes(self) -> dict[int, int]:
        """Return the number of stored schemes of each rank."""

    def _note(self, ranks: Vector) -> None:
        """Record the lowest rank, and the rounds since it last fell."""
        lowest = int(ranks.min())
        self._still = 0 if lowest < self._lowest else self._still + 1
        self._lowest = min(self._lowest, lowest)


class IndependentWalks(SearchStrategy):
    """Strategy of independent walks from a start to the goal; a walk that reaches it continues from the next start.

    With several starts a walk also changes to the next start after `turn` rounds. With `gather` the schemes at the goal
    are stored as starts of a larger format.
    """

    STATE = ("_turns", "_lowest", "_still", "_from", "_ages")

    def __init__(
        self, session: SteeredSession, starts: Sequence[WalkTerms], goal: int, turn: int, plan: LadderPlan, gather: bool
    ) -> None:
        super().__init__(session, starts, goal, plan)
        self._send, walkers = session.send, session.walkers
        self._turn, self._starts, self._gather = turn, list(starts), gather
        self._from = np.arange(walkers) % len(starts)
        self._ages = np.zeros(walkers, dtype=np.int64)
        self._turns = walkers
        self._reached = self._lowest <= goal
        self._gathered: list[tuple[Any, int]] = []
        if len(starts) > 1:
            self._send(np.arange(walkers), self._starts, self._from)

    def roots(self, walks: Vector) -> Vector:
        return self._from[walks]

    def after_round(self) -> None:
        ranks = self._session.ranks
        self._note(ranks)
        self._ages += 1
        reached = ranks <= self.goal
        if self._gather:
            taken = self._session.chosen(np.flatnonzero(reached))
            self._gathered += zip(self._session.terms(taken), self._from[taken].tolist(), strict=True)
        if len(self._starts) == 1:
            done = np.flatnonzero(reached)
            self._session.rewind(done)
        else:
            done = np.flatnonzero(reached | (self._ages >= self._turn))
            self._from[done] = (self._turns + np.arange(len(done))) % len(self._starts)
            self._turns += len(done)
            self._send(done, self._starts, self._from[done])
        self._ages[done] = 0

    def members(self) -> Iterator[tuple[WalkTerms, int]]:
        """Yield the schemes that reached the goal, then the lowest of the walks by rank, then the starts."""
        yield from self._gathered
        for walk in np.argsort(self._session.ranks, kind="stable")[:, None]:
            yield self._session.terms(walk)[0], int(self._from[walk[0]])
        yield from ((terms, root) for root, terms in enumerate(self._starts))

    def idle(self) -> bool:
        return self._reached or len(self._gathered) >= self.plan.passed or self._still >= self.plan.leave

    def sizes(self) -> dict[int, int]:
        return dict(sorted(Counter(terms.rank for terms, _ in self._gathered).items()))

    def to_arrays(self) -> Arrays:
        words = {f"words {i}": terms.words for i, (terms, _) in enumerate(self._gathered)}
        roots = np.array([root for _, root in self._gathered], dtype=np.int64)
        return super().to_arrays() | words | {"roots": roots}

    def take_arrays(self, arrays: Arrays) -> None:
        super().take_arrays(arrays)
        self._gathered = [
            (self._kind(self._target, arrays[f"words {i}"]), root) for i, root in enumerate(arrays["roots"].tolist())
        ]


class PopulationWalks(SearchStrategy):
    """Strategy for the walkers of a GPU: every one searches the goal, alone or with selection, and restarts there.

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

"""Pools of schemes by rank: many walks start from the schemes of one rank until enough of the next are found.

Lower schemes are reached from few of the schemes of a rank, so a single walk from the naive scheme
mostly ends where it can't go on. Sources: Arai, Ichikawa and Hukushima (arXiv 2312.16960) for walks
level by level; the growth of pools towards the frontier is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from .seeds import splitmix
from .ternary import Terms, TernaryTerms, canonical
from .walker import Walker


class PoolPlan(NamedTuple):
    """How large pools are and how long walks from them.

    Attributes:
        small: schemes of a rank that are enough far from the goal.
        large: schemes of a rank that are asked for near it.
        near: ranks above the goal that count as near.
        patience: rounds after which a walk without a gain starts anew from its pool.
        stall: rounds without a find after which every other walk goes to enlarge the pool.
    """

    small: int = 4
    large: int = 48
    near: int = 5
    patience: int = 8
    stall: int = 200


class PoolWalker(Walker, Protocol):
    """A walker that can be sent to other terms."""

    def terms(self) -> Terms:
        """The terms at `rank`."""

    def start_from(self, terms: Terms) -> None:
        """Go to other terms, which are its start from now on."""


def open_flips(terms: Terms) -> int:
    """How many factors of terms equal that of another term, up to sign: the chances to flip."""
    words = canonical(terms.words)[0] if isinstance(terms, TernaryTerms) else terms.words
    counts = [np.unique(row, return_counts=True)[1] for row in words]
    return sum(int(count[count > 1].sum()) for count in counts)


class Pools:
    """The strategy of a run: where each walk starts, and down to which rank it goes.

    All changes are made between rounds, in walk order and from draws of its own, so they do not
    depend on how the walks are shared out. A scheme is drawn with the chance of its open flips; one
    without any is a dead end that a plus falls back to (4x4x4 has many at rank 49), so it is left out.

    Attributes:
        level: the rank that the walks start from.
        members: for each rank the schemes found, as (3, rank) words.
    """

    def __init__(self, start: Terms, goal: int, seed: int, plan: PoolPlan | None = None) -> None:
        self.plan = plan or PoolPlan()
        self.level, self.goal = start.rank, goal
        self.members: dict[int, list[npt.NDArray[np.uint64]]] = {start.rank: [start.words]}
        self._weights: dict[int, list[int]] = {start.rank: [1]}
        self._start, self._seed, self._draws, self._idle = start, seed, 0, 0
        self._homes: list[int] = []
        self._ages: list[int] = []

    def goal_of(self, walk: int) -> int:
        """The rank at which a walk stops in this round."""
        return max(self.goal, self._homes[walk] - 1)

    def send(self, walkers: Sequence[PoolWalker]) -> None:
        """Send all walks to members of the pool."""
        self._homes, self._ages = [0] * len(walkers), [0] * len(walkers)
        for index, walker in enumerate(walkers):
            self._send(index, walker)

    def after_round(self, walkers: Sequence[PoolWalker]) -> None:
        """Take what the walks found, go down a rank when the pool is full, and send walks anew.

        Raises:
            PlanError: `send` was not called before with as many walks.
        """
        if len(walkers) != len(self._homes):
            raise PlanError("the walks were not sent from these pools")
        self._idle += 1
        for index, walker in enumerate(walkers):
            self._ages[index] += 1
            if walker.rank < self._homes[index]:
                self._keep(walker)
                if walker.rank < self.level:
                    self._idle = 0
        full = [rank for rank in self.members if rank < self.level and len(self.members[rank]) >= self.wanted(rank)]
        if full:
            self.level = min(full)
            self.send(walkers)
            return
        for index, walker in enumerate(walkers):
            if walker.rank < self._homes[index] or self._ages[index] >= self.plan.patience:
                self._send(index, walker)

    def wanted(self, rank: int) -> int:
        """How many schemes of a rank are enough to start from it."""
        return self.plan.large if rank <= self.goal + self.plan.near else self.plan.small

    def _send(self, index: int, walker: PoolWalker) -> None:
        feeding = self._idle >= self.plan.stall and index % 2 == 1 and self.level + 1 in self.members
        home = self.level + 1 if feeding else self.level
        weights = np.cumsum(self._weights[home])
        self._draws += 1
        draw = splitmix(self._seed, self._draws) % int(weights[-1])
        words = self.members[home][int(np.searchsorted(weights, draw, side="right"))]
        walker.start_from(type(self._start)(self._start.target, words.copy()))
        self._homes[index], self._ages[index] = home, 0

    def _keep(self, walker: PoolWalker) -> None:
        """Add a find to its pool, in place of a drawn one where the pool is twice what is wanted."""
        terms = walker.terms()
        chances = open_flips(terms)
        if not chances and terms.rank > self.goal:
            return
        pool, weights = self.members.setdefault(terms.rank, []), self._weights.setdefault(terms.rank, [])
        if len(pool) < 2 * self.plan.large:
            pool.append(terms.words)
            weights.append(1 + chances)
            return
        self._draws += 1
        place = splitmix(self._seed, self._draws) % len(pool)
        pool[place], weights[place] = terms.words, 1 + chances

    def to_arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """The state as arrays, for a checkpoint."""
        arrays: dict[str, npt.NDArray[np.generic]] = {
            "numbers": np.array([self.level, self.goal, self._draws, self._idle], dtype=np.int64),
            "homes": np.array(self._homes, dtype=np.int64),
            "ages": np.array(self._ages, dtype=np.int64),
        }
        for rank, pool in self.members.items():
            arrays[f"rank {rank}"] = np.stack(pool)
            arrays[f"weights {rank}"] = np.array(self._weights[rank], dtype=np.int64)
        return arrays

    def take_arrays(self, arrays: dict[str, npt.NDArray[np.generic]]) -> None:
        """Put back a state that `to_arrays` gave."""
        self.level, self.goal, self._draws, self._idle = (int(x) for x in arrays["numbers"].tolist())
        self._homes, self._ages = arrays["homes"].tolist(), arrays["ages"].tolist()
        ranks = sorted((int(name.split()[1]) for name in arrays if name.startswith("rank ")), reverse=True)
        self.members = {rank: list(arrays[f"rank {rank}"].astype(np.uint64)) for rank in ranks}
        self._weights = {rank: arrays[f"weights {rank}"].tolist() for rank in ranks}

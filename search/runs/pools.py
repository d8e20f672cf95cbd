"""Pools of schemes by rank: many walks start from the schemes of one rank until enough of the next are found.

Lower schemes are reached from few of the schemes of a rank, so a single walk from the naive scheme mostly
ends in a scheme without further reductions. Sources: Arai, Ichikawa and Hukushima (arXiv 2312.16960) for
walks level by level; the growth of pools towards the frontier is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ..flipgraph.walkers import WalkTerms
from ..seeds import splitmix, splitmix_range
from ..terms.packed import SchemeTerms, Vector
from ..terms.ternary import open_flips
from .engine import Session
from .plan import PoolPlan
from .snapshot import Arrays
from .strategy import SearchStrategy


class _Pool(NamedTuple):
    """The schemes of one rank: words (3 planes, rank), sampling weights, and the index of the start of each."""

    words: list[npt.NDArray[np.uint64]]
    weights: list[int]
    roots: list[int]

    def put(self, place: int, words: npt.NDArray[np.uint64], weight: int, root: int) -> None:
        """Replace a member, or append one."""
        self.words[place : place + 1] = [words]
        self.weights[place : place + 1] = [weight]
        self.roots[place : place + 1] = [root]


class RankPools(SearchStrategy):
    """Strategy in which all walks start from the pool of one rank and search one rank lower.

    All changes are made between rounds, in walk order and with separate random draws, so they do not
    depend on the distribution of walks over threads. A scheme is drawn with a weight of 1 plus its open flips;
    one without any is a dead end to which walks return after a plus (4x4x4 has many at rank 49), so it is
    excluded.

    Attributes:
        level: the rank that the walks start from.
        members_of: for each rank the schemes found.

    Raises:
        PlanError: the starts are symmetric terms, which these pools do not support.
    """

    NUMBERS = ("level", "_draws", "_idle", "_still")

    def __init__(
        self, starts: Sequence[WalkTerms], walkers: int, goal: int, seed: int, plan: PoolPlan | None = None
    ) -> None:
        if not isinstance(starts[0], SchemeTerms):
            raise PlanError(f"terms of kind {type(starts[0]).__name__} are not gathered: search without pools")
        super().__init__(starts, goal, plan or PoolPlan())
        self._seed, self._draws, self._idle = seed, 0, 0
        self.members_of: dict[int, _Pool] = {}
        for root, start in enumerate(starts):
            self._add(start, root)
        self.level = min(self.members_of)
        self._reached = self.level <= goal  # the next format can start at once
        self._homes, self._ages, self._from = np.zeros((3, walkers), dtype=np.int64)

    def goals(self) -> Vector:
        return np.maximum(self.goal, self._homes - 1)

    def roots(self, walks: Vector) -> Vector:
        return self._from[walks]

    def begin(self, session: Session) -> None:
        """Send all walks to members of the pool of this level."""
        self._send(session, np.arange(len(self._homes)))

    def after_round(self, session: Session) -> None:
        """Collect the finds of the walks, go to a lower rank if its pool is full, and send walks to new starts.

        Raises:
            PlanError: the number of walks is not that of the pools.
        """
        ranks = session.ranks
        if len(ranks) != len(self._homes):
            raise PlanError("the walks were not sent from these pools")
        lowest = min(self.members_of)
        self._idle += 1
        self._still += 1
        self._ages += 1
        gained = ranks < self._homes
        taken = session.chosen(np.flatnonzero(gained))
        found = zip(ranks[taken].tolist(), session.terms(taken), self._from[taken].tolist(), strict=True)
        for rank, terms, root in found:
            if self._add(terms, root) and rank < self.level:
                self._idle = 0
        if min(self.members_of) < lowest:
            self._still = 0
        full = [rank for rank in self.members_of if self.goal < rank < self.level and self._full(rank)]
        if full:
            self.level = min(full)
            self.begin(session)
            return
        self._send(session, np.flatnonzero(gained | (self._ages >= self.plan.restart_rounds)))

    def wanted(self, rank: int) -> int:
        """Return the number of schemes of a rank that are enough to start from it."""
        return self.plan.large if rank <= self.goal + self.plan.near else self.plan.small

    def members(self, session: Session) -> Iterator[tuple[WalkTerms, int]]:
        """Yield the schemes in order of increasing rank, then of arrival."""
        for rank in sorted(self.members_of):
            pool = self.members_of[rank]
            for words, root in zip(pool.words, pool.roots, strict=True):
                yield self._kind(self._target, words), root

    def idle(self) -> bool:
        reached = sum(len(pool.words) for rank, pool in self.members_of.items() if rank <= self.goal)
        return self._reached or reached >= self.plan.passed or self._still >= self.plan.leave

    def sizes(self) -> dict[int, int]:
        return {rank: len(pool.words) for rank, pool in sorted(self.members_of.items())}

    def _full(self, rank: int) -> bool:
        return len(self.members_of[rank].words) >= self.wanted(rank)

    def _send(self, session: Session, walks: Vector) -> None:
        """Send some walks to members drawn in walk order."""
        draws = splitmix_range(self._seed, self._draws + 1, len(walks))
        self._draws += len(walks)
        feeding = (self._idle >= self.plan.stall) & (walks % 2 == 1) & (self.level + 1 in self.members_of)
        homes = self.level + feeding
        for home in np.unique(homes).tolist():
            here, pool = homes == home, self.members_of[home]
            weights = np.cumsum(pool.weights)
            places = np.searchsorted(weights, (draws[here] % np.uint64(weights[-1])).astype(np.int64), side="right")
            session.send(walks[here], [self._kind(self._target, words.copy()) for words in pool.words], places)
            self._from[walks[here]] = np.array(pool.roots, dtype=np.int64)[places]
        self._homes[walks], self._ages[walks] = homes, 0

    def _add(self, terms: Any, root: int) -> bool:
        """Add a scheme, unless it is a dead end, to its pool; replace a random member of a pool of 2 `plan.large`."""
        chances = open_flips(terms)
        if not chances and terms.rank > self.goal and self.members_of:
            return False
        pool = self.members_of.setdefault(terms.rank, _Pool([], [], []))
        room = len(pool.words) < 2 * self.plan.large
        pool.put(len(pool.words) if room else self._place(len(pool.words)), terms.words, 1 + chances, root)
        return True

    def _place(self, below: int) -> int:
        self._draws += 1
        return splitmix(self._seed, self._draws) % below

    def to_arrays(self) -> Arrays:
        arrays = {**super().to_arrays(), "walks": np.stack([self._homes, self._ages, self._from])}
        for rank, pool in self.members_of.items():
            arrays[f"words {rank}"] = np.stack(pool.words)
            arrays[f"chances {rank}"] = np.array([pool.weights, pool.roots], dtype=np.int64)
        return arrays

    def take_arrays(self, arrays: Arrays) -> None:
        super().take_arrays(arrays)
        self._homes, self._ages, self._from = arrays["walks"].astype(np.int64)
        ranks = [int(name.split()[1]) for name in arrays if name.startswith("words ")]
        self.members_of = {
            rank: _Pool(list(arrays[f"words {rank}"]), *arrays[f"chances {rank}"].tolist()) for rank in ranks
        }

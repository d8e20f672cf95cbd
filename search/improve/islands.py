"""Populations of walkers that outlive their turn: one island for each route to a format, with migration between them.

A route to a large format starts well above the rank that is wanted, and one turn does not bring walkers all the way
down. An island keeps the lowest schemes that they came to, and the next turn by the same route goes on from these.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...schemes_db import Scheme
from ..flipgraph.gpu.fleet import Fleet
from ..flipgraph.gpu.widen import from_many_roots
from ..runs.distinct import DistinctPool

MEMBERS = 64
"""Schemes of an island: unpacking one and telling it from the others takes about 10 ms."""

SETTLING = 3.0
"""Seconds that a turn's end takes at most to find members: schemes that are hard to tell apart take 0.3 s each."""

SLACK = 2
"""How many products more than the least a member may have."""

PATIENCE = 4
"""Turns without a lower rank after which an island begins anew from its route."""

MIGRATION = 3
"""Every so many turns an island also starts from the members of the format's other islands."""


@dataclass
class Island:
    """The schemes that walkers of one route came down to.

    Attributes:
        members: inequivalent schemes, the lowest first.
        turns: how many it has had.
        idle: turns since its lowest rank last fell.
    """

    members: list[Scheme] = field(default_factory=list)
    turns: int = 0
    idle: int = 0

    @property
    def rank(self) -> int | None:
        """The lowest rank of its members, None where it has none."""
        return self.members[0].rank if self.members else None


class Islands:
    """The islands of all formats, by the format's name and the route's."""

    def __init__(self) -> None:
        self._islands: dict[tuple[str, str], Island] = {}

    def island(self, target: str, route: str) -> Island:
        """That of a route to a format; a new one has no members."""
        return self._islands.setdefault((target, route), Island())

    def starts(self, target: str, route: str, fresh: Sequence[Scheme]) -> list[Scheme]:
        """What the next turn starts from: of what the route gives, the members and, at times, those of other islands
        all that is nearly of the least rank.

        An island without a gain for long is emptied first, so that it begins anew.
        """
        island = self.island(target, route)
        if island.idle >= PATIENCE:
            island.members, island.idle = [], 0
        schemes = [*fresh, *island.members]
        if island.turns % MIGRATION == MIGRATION - 1:
            schemes += [one for key, other in self._islands.items() if key[0] == target for one in other.members]
        limit = min(scheme.rank for scheme in schemes) + SLACK
        return list({scheme.digest: scheme for scheme in schemes if scheme.rank <= limit}.values())

    def settle(self, target: str, route: str, fleet: Fleet, began: int) -> int:
        """Keep the lowest schemes of walkers that began at a rank; returns the lowest rank that they came to."""
        island = self.island(target, route)
        lowest = int(fleet.score.min())
        island.turns += 1
        island.idle = 0 if lowest < began else island.idle + 1
        order = np.argsort(fleet.score, kind="stable")
        low = order[fleet.score[order] <= lowest + SLACK]
        pool, begin = DistinctPool(), time.perf_counter()
        for rank in range(lowest, lowest + SLACK + 1):
            for walker in from_many_roots(low[fleet.score[low] == rank], fleet.roots)[:MEMBERS].tolist():
                if len(pool) < MEMBERS and (not len(pool) or time.perf_counter() - begin < SETTLING):
                    pool.add(fleet.scheme(walker))
        island.members = pool.schemes
        return lowest

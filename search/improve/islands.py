"""Populations of schemes that persist between turns: one island for each route to a format, with migration.

A route to a large format starts well above the wanted rank, and one turn is too short to reach it. An island stores the
lowest schemes that its walkers reached, and the next turn by the same route starts from these.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...schemes_db import Scheme
from ..flipgraph.gpu.fleet import from_many_roots
from ..runs.distinct import DistinctPool
from ..turn_fleet import TurnFleet

MEMBERS = 64
"""Maximum number of schemes of an island: unpacking one and comparing it with the others takes about 10 ms."""

SETTLING = 3.0
"""Maximum seconds for the selection of members after a turn: schemes that are hard to distinguish take 0.3 s each."""

SLACK = 2
"""Maximum excess of a member's rank over the lowest rank."""

PATIENCE = 240.0
"""Seconds of walks without a lower rank after which an island is reset to the starts of its route."""

MIGRATION = 3
"""Period in turns at which an island also starts from the members of the format's other islands."""


@dataclass
class Island:
    """The lowest schemes that walkers of one route reached.

    Attributes:
        members: inequivalent schemes, the lowest first.
        turns: number of turns.
        idle: seconds of walks since the lowest rank last decreased.
    """

    members: list[Scheme] = field(default_factory=list)
    turns: int = 0
    idle: float = 0.0


class Islands:
    """The islands of all formats, by the format's name and the route's."""

    def __init__(self) -> None:
        self._islands: dict[tuple[str, str], Island] = {}

    def island(self, target: str, route: str) -> Island:
        """Return the island of a route to a format; a new one has no members."""
        return self._islands.setdefault((target, route), Island())

    def starts(self, target: str, route: str, fresh: Sequence[Scheme], alone: bool = False) -> list[Scheme]:
        """Return the starts of the next turn: the route's starts `fresh`, the members and, every MIGRATION turns, the
        members of the format's other islands, members within SLACK of the lowest rank.

        The fresh starts remain beside lower members: where all members are in one trap, walks that begin above it
        avoid it. Of 24 walks from projections of a 6x6x6:153 all eight that began at 5x6x6:140 reached 130, and most of
        those that began at 141 ended at 134. With `alone` there is no migration to this island: its walkers need a
        symmetry. An island without a gain for PATIENCE is emptied first.
        """
        island = self.island(target, route)
        if island.idle >= PATIENCE:
            island.members, island.idle = [], 0.0
        members = list(island.members)
        if island.turns % MIGRATION == MIGRATION - 1 and not alone:
            members += [one for key, other in self._islands.items() if key[0] == target for one in other.members]
        limit = min(scheme.rank for scheme in [*fresh, *members]) + SLACK
        schemes = [*fresh, *(scheme for scheme in members if scheme.rank <= limit)]
        return list({scheme.digest: scheme for scheme in schemes}.values())

    def settle(self, target: str, route: str, fleet: TurnFleet, began: int) -> int:
        """Store the lowest schemes of walkers that started at rank `began`; return the lowest rank they reached."""
        island = self.island(target, route)
        lowest = int(fleet.score.min())
        island.turns += 1
        island.idle = 0.0 if lowest < began else island.idle + fleet.seconds
        order = np.argsort(fleet.score, kind="stable")
        low = order[fleet.score[order] <= lowest + SLACK]
        pool, begin = DistinctPool(), time.perf_counter()
        for rank in range(lowest, lowest + SLACK + 1):
            for walker in from_many_roots(low[fleet.score[low] == rank], fleet.roots)[:MEMBERS].tolist():
                if len(pool) < MEMBERS and (not len(pool) or time.perf_counter() - begin < SETTLING):
                    pool.add(fleet.scheme(walker))
        island.members = pool.schemes
        return lowest

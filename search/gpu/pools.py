"""Pools of a ladder: schemes of one score that are truly different, so that the next rung starts from many places."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from ...schemes_db import Provenance, Scheme
from ...schemes_db.invariants import invariants
from .fleet import Fleet
from .rules import Selection

LOOKED_AT = 256
"""Walkers at the rank wanted whose place is looked at after a launch: unpacking one takes about a millisecond."""

PLUS_AFTER = 600
"""Steps after which a walker that is to leave the places known takes a plus."""

STEPS = 10 * PLUS_AFTER + PLUS_AFTER // 2
"""Steps of a launch that widens a pool: it ends between two pluses, for right after one no walker is where it was."""


class DistinctPool:
    """Schemes with invariants of their own: no change of basis or of roles makes one another.

    Copies of one scheme that a selection has spread are one member.
    """

    def __init__(self, schemes: Iterable[Scheme] = ()) -> None:
        self.schemes: list[Scheme] = []
        self._known: set[str] = set()
        self._seen: set[str] = set()
        for scheme in schemes:
            self.add(scheme)

    def __len__(self) -> int:
        return len(self.schemes)

    def add(self, scheme: Scheme) -> bool:
        """Take a scheme in; False where one like it is there."""
        if scheme.digest in self._seen:
            return False
        self._seen.add(scheme.digest)
        kind = invariants(scheme).digest
        if kind in self._known:
            return False
        self._known.add(kind)
        self.schemes.append(scheme)
        return True


def from_many_roots(walkers: npt.NDArray[np.int64], roots: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The walkers in another order: one of each root first, then a second of each, and so on."""
    _, places = np.unique(roots[walkers], return_inverse=True)
    order = np.argsort(places, kind="stable")
    starts = np.searchsorted(places[order], places[order])
    turn = np.empty(len(walkers), dtype=np.int64)
    turn[order] = np.arange(len(walkers)) - starts
    return walkers[np.argsort(turn, kind="stable")]


def widened(
    fleet: Fleet,
    pool: DistinctPool,
    goal: int,
    count: int,
    *,
    seconds: float,
    provenance: Provenance | None = None,
    on_find: Callable[[Scheme], None] = lambda scheme: None,
) -> None:
    """Fill a pool up to `count` by walks from its members that come back to their rank by another way.

    The members are of rank `goal`, over the fleet's target. `on_find` is told of every new one, unchecked.
    The fleet's rules are as before afterwards; its walkers are where the walks left them.
    """
    if not len(pool) or len(pool) >= count:
        return
    rules, begin = fleet.rules, time.perf_counter()
    fleet.rules = rules._replace(selection=Selection(), plus_after=PLUS_AFTER, restart_after=1 << 30)
    walkers = np.arange(fleet.walkers)
    members = fleet.enter(pool.schemes)
    fleet.send(walkers, members[walkers % len(members)])
    try:
        while len(pool) < count and time.perf_counter() - begin < seconds:
            fleet.launch(STEPS)
            back = np.flatnonzero(fleet.ranks() <= goal)
            for walker in back[np.linspace(0, len(back) - 1, min(LOOKED_AT, len(back))).astype(np.int64)].tolist():
                if len(pool) >= count or time.perf_counter() - begin >= seconds:
                    break
                scheme = fleet.scheme(walker, current=True, provenance=provenance)
                if pool.add(scheme):
                    on_find(scheme)
    finally:
        fleet.rules = rules

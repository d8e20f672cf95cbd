"""Walks that add schemes to a pool of one score, and the order in which finds are collected."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ....schemes_db import Provenance, Scheme
from ....schemes_db.factor import IntArray
from ...runs.distinct import DistinctPool
from ..policy import Selection
from .fleet import Fleet

LOOKED_AT = 256
"""Maximum number of walkers at the rank wanted that are unpacked after a launch: one takes about a millisecond."""

PLUS_AFTER = 600
"""Steps after which a walker makes a plus, to leave the known schemes."""

STEPS = 10 * PLUS_AFTER + PLUS_AFTER // 2
"""Steps of a launch that widens a pool: it ends between two pluses, as right after one no walker is at its rank."""


def from_many_roots(walkers: IntArray, roots: IntArray) -> IntArray:
    """Reorder the walkers: one of each root first, then a second of each, and so on."""
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
    seconds: float = math.inf,
    launches: int | None = None,
    provenance: Provenance | None = None,
    on_find: Callable[[Scheme], None] = lambda scheme: None,
) -> None:
    """Fill a pool up to `count` by walks from its members that return to their rank through higher ranks.

    The walks end after `seconds` or `launches`. The members are schemes of rank `goal` of the fleet's target.
    `on_find` is called with every new one, unchecked. The fleet's policy is restored afterwards; its walkers
    stay where the walks ended.
    """
    if not len(pool) or len(pool) >= count:
        return
    policy, begin = fleet.policy, time.perf_counter()
    fleet.policy = replace(policy, selection=Selection(), plus_after=PLUS_AFTER, restart_after=1 << 30)
    walkers = np.arange(fleet.walkers)
    members = fleet.enter(pool.schemes)
    fleet.send(walkers, members[walkers % len(members)])
    try:
        launched = 0
        while len(pool) < count and time.perf_counter() - begin < seconds and launched != launches:
            fleet.launch(STEPS)
            launched += 1
            back = np.flatnonzero(fleet.ranks() <= goal)
            for walker in back[np.linspace(0, len(back) - 1, min(LOOKED_AT, len(back))).astype(np.int64)].tolist():
                if len(pool) >= count or time.perf_counter() - begin >= seconds:
                    break
                scheme = fleet.scheme(walker, current=True, provenance=provenance)
                if pool.add(scheme):
                    on_find(scheme)
    finally:
        fleet.policy = policy

"""Collection of finds from a running fleet: every scheme up to a rank is a find, and walkers continue from it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import numpy as np

from ...schemes_db import Certificate, Provenance, Scheme
from ...verify import certify
from ..turn_fleet import TurnFleet

TAKEN = 32
"""Maximum number of finds of a launch: copying one from the GPU and certifying it takes some milliseconds."""


def collect_below(
    fleet: TurnFleet,
    highest: int,
    *,
    steps: int,
    seconds: float,
    longest: float = 0.0,
    count: int = 64,
    provenance: Provenance | None = None,
    on_find: Callable[[Scheme, Certificate], None] = lambda scheme, certificate: None,
    enough: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda _: None,
) -> dict[int, int]:
    """Walk for `seconds`, report up to `count` schemes of each rank up to `highest`, and return their number by rank.

    A walk whose lowest rank fell in the second half of its time continues, to `longest` seconds at most: the next turn
    would start again from the naive scheme. It ends earlier if `enough()`. Walkers do not stop at a find. Finds are
    the lowest and the current schemes of walkers after a launch, without duplicates, certified, the lowest ranks first.

    Raises:
        VerificationError: a walker returned a wrong scheme (an internal error).
        DeviceLostError: a GPU stopped responding.
    """
    found, seen, begin = Counter[int](), set[str](), time.perf_counter()
    lowest, fell = int(fleet.score.min()), 0.0
    looked, rng = np.full(fleet.walkers, highest + 1), np.random.default_rng(len(fleet.target.terms))
    while not enough():
        passed = time.perf_counter() - begin
        if passed >= seconds and (passed >= longest or 2 * fell <= passed):
            break
        fleet.launch(steps)
        low = int(fleet.score.min())
        if low < lowest:
            lowest, fell = low, time.perf_counter() - begin
        rate = f", {fleet.flips_per_second / 1e6:.0f} M flips/s" if fleet.flips else ""
        say(f"{fleet.target}: lowest rank {low}{rate}")
        if low > highest:
            continue
        fresh = np.flatnonzero(fleet.score < looked)
        looked = np.minimum(looked, fleet.score)
        ranks = fleet.ranks()
        back = np.flatnonzero(ranks <= highest)
        walkers = np.concatenate([fresh, back])
        reached = np.concatenate([fleet.score[fresh], ranks[back]])
        standing = np.arange(len(walkers)) >= len(fresh)
        open_ = np.isin(reached, [rank for rank in np.unique(reached).tolist() if found[rank] < count])
        order = np.lexsort((rng.random(len(walkers)), standing, reached, ~open_))[: min(TAKEN, int(open_.sum()))]
        for place in order.tolist():
            scheme = fleet.scheme(int(walkers[place]), current=bool(standing[place]), provenance=provenance)
            if scheme.digest not in seen and found[scheme.rank] < count:
                seen.add(scheme.digest)
                found[scheme.rank] += 1
                on_find(scheme, certify(scheme))
    return dict(sorted(found.items()))

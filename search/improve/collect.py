"""A fleet on the way down: every scheme below a rank is a find, and the walkers go on from it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import numpy as np

from ...schemes_db import Certificate, Provenance, Scheme
from ...verify import certify
from ..flipgraph.gpu.fleet import Fleet

TAKEN = 32
"""Finds of a launch at most: taking one off the GPU and certifying it takes some milliseconds."""


def collect_below(
    fleet: Fleet,
    highest: int,
    *,
    steps: int,
    seconds: float,
    count: int = 64,
    provenance: Provenance | None = None,
    on_find: Callable[[Scheme, Certificate], None] = lambda scheme, certificate: None,
    enough: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda _: None,
) -> dict[int, int]:
    """Walk for so many seconds and hand over up to `count` schemes of each rank up to `highest`: how many of each.

    It ends earlier where there is `enough`. No walker stops at a find. Finds are the lowest schemes that
    walkers had and those where they stand after a launch, each once, certified, the lowest ranks first.

    Raises:
        VerificationError: a walker came back with a scheme that is wrong, which must not happen.
        DeviceLostError: a GPU stopped answering.
    """
    found, seen, begin = Counter[int](), set[str](), time.perf_counter()
    looked, rng = np.full(fleet.walkers, highest + 1), np.random.default_rng(len(fleet.layout.target.terms))
    while time.perf_counter() - begin < seconds and not enough():
        fleet.launch(steps)
        low = int(fleet.score.min())
        say(f"{fleet.layout.target}: lowest rank {low}, {fleet.flips_per_second / 1e6:.0f} M flips/s")
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

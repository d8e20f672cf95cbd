"""Ladders: schemes of one format, carried over to the next, are where its walkers start."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ....schemes_db import Certificate, Provenance, Scheme, parse_target
from ...format_moves.corners import starts_for
from ...runs.distinct import DistinctPool
from .fleet import Fleet
from .search_until import Say, SearchOutcome, search_until
from .settings import Setting, setting_for
from .widen import widened

_NEXT_SEED = 1_000_003
"""What a try adds to the seed of a ladder."""


@dataclass(frozen=True)
class Rung:
    """A step of a ladder: a target, the score wanted there, and the time it may take.

    `count` schemes are wanted, for the next rung to start from; once there is one, at most `linger`
    seconds more are spent on the others. Without a `setting` it is the format's own.
    """

    target: str
    goal: int
    seconds: float
    count: int = 1
    linger: float = 0.0
    cost: str = ""
    setting: Setting | None = None


def _widen(
    fleet: Fleet,
    result: SearchOutcome,
    rung: Rung,
    provenance: Provenance | None,
    on_find: Callable[[Scheme, Certificate], None],
) -> None:
    """Add schemes that walks from the finds come to, for half of the time that the rung lingers."""
    begin = time.perf_counter()

    def take(scheme: Scheme) -> None:
        result.take(scheme, result.seconds + time.perf_counter() - begin)
        on_find(scheme, result.certificates[-1])

    widened(
        fleet,
        DistinctPool(result.schemes),
        rung.goal,
        rung.count,
        seconds=rung.linger / 2,
        provenance=provenance,
        on_find=take,
    )


def climb(
    starts: Sequence[Scheme],
    rungs: Sequence[Rung],
    *,
    seed: int = 0,
    tries: int = 0,
    ternary: bool = False,
    walkers: int | None = None,
    device: str = "cuda",
    provenance: Callable[[Rung], Provenance] | None = None,
    on_find: Callable[[Rung, Scheme, Certificate], None] = lambda rung, scheme, certificate: None,
    on_rung: Callable[[Rung, SearchOutcome, Fleet], None] = lambda rung, search_until, fleet: None,
    say: Say = lambda _: None,
) -> list[SearchOutcome]:
    """Each rung from the finds of the one before, the first from `starts`.

    The finds of a rung are distinct (`DistinctPool`). Where they are fewer than wanted, walks from
    them add more, for as long as the rung lingers. `on_find` gets each as soon as it is certified.
    Where a rung finds nothing, the rung before looks for other schemes with another seed, up to `tries`
    times in all: what a scheme leads to is decided by its orbit, not by the walk from it. Measured: of
    the 4x5x5:73 over Z2, those with 21 products that meet their border came to 5x5x5:97 in 0.2 s, those
    with 18 not in 20 s. Returns the last search_until of each rung that was tried.

    Raises:
        PlanError: a rung's target can't be reached from the one before, or no GPU is there.
        TargetError: a target is not known.
    """
    rng = np.random.default_rng(seed)
    pools, results = [list(starts)], list[SearchOutcome]()
    attempt = level = 0
    while level < len(rungs):
        rung = rungs[level]
        target = parse_target(rung.target)
        setting = rung.setting or setting_for(target, ternary=ternary, cost=rung.cost)
        began = time.perf_counter()
        fleet = Fleet(
            starts_for(pools[level], target, rng),
            setting.policy,
            seed=seed + attempt * _NEXT_SEED,
            walkers=walkers,
            ternary=ternary,
            device=device,
        )
        took = time.perf_counter() - began
        say(f"{rung.target}: {len(pools[level])} starts, {fleet.walkers} walkers, ready in {took:.1f} s")
        source = provenance(rung) if provenance else None
        result = search_until(
            fleet,
            rung.goal,
            steps=setting.steps,
            seconds=rung.seconds,
            count=rung.count,
            linger=rung.linger / 2,
            distinct=True,
            provenance=source,
            on_find=partial(on_find, rung),
            say=say,
        )
        if not rung.cost:
            _widen(fleet, result, rung, source, partial(on_find, rung))
        result.setup = took
        results[level:] = [result]
        on_rung(rung, result, fleet)
        if result.schemes:
            level += 1
            pools[level:] = [result.schemes]
        elif attempt < tries and level:
            attempt += 1
            level -= 1
        else:
            break
    return results

"""Ladders: schemes of one format, carried over to the next, are where its walkers start."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...schemes_db import Certificate, Provenance, Scheme, parse_target
from .chasing import Chase, Say, chase
from .fleet import Fleet
from .pools import DistinctPool, widened
from .settings import Setting, setting_for
from .starts import starts_for


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
    objective: str = "rank"
    setting: Setting | None = None


def _widen(
    fleet: Fleet,
    result: Chase,
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
    ternary: bool = False,
    walkers: int | None = None,
    device: str = "cuda",
    provenance: Callable[[Rung], Provenance] | None = None,
    on_find: Callable[[Rung, Scheme, Certificate], None] = lambda rung, scheme, certificate: None,
    on_rung: Callable[[Rung, Chase, Fleet], None] = lambda rung, chase, fleet: None,
    say: Say = lambda _: None,
) -> list[Chase]:
    """Each rung from the finds of the one before, the first from `starts`; ends where a rung finds nothing.

    The finds of a rung are distinct (`DistinctPool`). Where they are fewer than wanted, walks from
    them add more, for as long as the rung lingers. `on_find` gets each as soon as it is certified.

    Raises:
        PlanError: a rung's target can't be reached from the one before, or no GPU is there.
        TargetError: a target is not known.
    """
    pool, results, rng = list(starts), [], np.random.default_rng(seed)
    for rung in rungs:
        target = parse_target(rung.target)
        setting = rung.setting or setting_for(target, ternary=ternary, objective=rung.objective)
        began = time.perf_counter()
        fleet = Fleet(
            starts_for(pool, target, rng),
            setting.rules,
            seed=seed,
            walkers=walkers,
            ternary=ternary,
            device=device,
        )
        say(f"{rung.target}: {len(pool)} starts, {fleet.walkers} walkers, ready in {time.perf_counter() - began:.1f} s")
        source = provenance(rung) if provenance else None
        result = chase(
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
        if rung.objective == "rank":
            _widen(fleet, result, rung, source, partial(on_find, rung))
        results.append(result)
        on_rung(rung, result, fleet)
        if not result.schemes:
            break
        pool = result.schemes
    return results

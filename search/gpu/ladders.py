"""Ladders: schemes of one format, carried over to the next, are where its walkers start."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...errors import PlanError
from ...schemes_db import Certificate, Kind, Provenance, Scheme, Target, parse_target
from .chasing import Chase, Say, chase
from .fleet import Fleet
from .pools import DistinctPool, widened
from .settings import Setting, setting_for


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


def bordered(scheme: Scheme, target: Target) -> Scheme:
    """A scheme of a larger target: the small one in its first corner, the rest added naively.

    The blocks of the larger target must continue those of the smaller: so a full product is extended
    along any axes, and a triangular one along its diagonal.

    Raises:
        PlanError: they do not.
    """
    small = scheme.target
    fits = all(a <= b for a, b in zip(small.shape, target.shape, strict=True))
    if not fits or any(
        (part != whole[: part.shape[0], : part.shape[1]]).any()
        for part, whole in zip(small.kind_arrays, target.kind_arrays, strict=True)
    ):
        raise PlanError(f"{small} is no corner of {target}: the border between them is not defined")
    (m, k, n), (rows, inner, cols) = small.shape, target.shape
    a, b, _ = target.terms.T
    covered = (a // inner < m) & (a % inner < k) & (b % cols < n)
    extra = target.terms[~covered]
    factors = []
    shapes = ((rows, inner), (inner, cols), (rows, cols))
    for f, (factor, shape) in enumerate(zip(scheme.factors, shapes, strict=True)):
        whole = np.zeros((scheme.rank + len(extra), *shape), dtype=np.int64)
        whole[: scheme.rank, : factor.rows, : factor.cols] = factor.dense.reshape(-1, factor.rows, factor.cols)
        whole.reshape(len(whole), -1)[scheme.rank + np.arange(len(extra)), extra[:, f]] = 1
        factors.append(whole)
    provenance = Provenance(kind="search", parents=(scheme.digest,), relation="naive border")
    u, v, w = factors
    return Scheme.from_arrays(target, u, v, w, scheme.ring, provenance=provenance)


def cut(scheme: Scheme, target: Target) -> Scheme:
    """A scheme of a smaller target: all blocks outside its corner are set to zero, empty terms dropped.

    Raises:
        PlanError: the smaller target is no corner of the scheme's.
    """
    fits = all(a <= b for a, b in zip(target.shape, scheme.target.shape, strict=True))
    if not fits or any(
        (part != whole[: part.shape[0], : part.shape[1]]).any()
        for part, whole in zip(target.kind_arrays, scheme.target.kind_arrays, strict=True)
    ):
        raise PlanError(f"{target} is no corner of {scheme.target}: there is nothing to cut it from")
    parts = [
        factor.dense.reshape(-1, factor.rows, factor.cols)[:, : kinds.shape[0], : kinds.shape[1]]
        for factor, kinds in zip(scheme.factors, target.kind_arrays, strict=True)
    ]
    parts = [np.where(kinds == Kind.ABSENT, 0, part) for part, kinds in zip(parts, target.kind_arrays, strict=True)]
    left = np.logical_and.reduce([part.any(axis=(1, 2)) for part in parts])
    u, v, w = (part[left] for part in parts)
    provenance = Provenance(kind="search", parents=(scheme.digest,), relation="projection")
    return Scheme.from_arrays(target, u, v, w, scheme.ring, provenance=provenance)


def rolled(scheme: Scheme, by: int) -> Scheme:
    """The scheme of a full product with the rows of A and C moved down in a circle: so any row can be cut off.

    Raises:
        PlanError: it is of another target.
    """
    if not scheme.target.is_general:
        raise PlanError(f"the rows of {scheme.target} can't change places")
    u, v, w = (factor.dense.reshape(-1, factor.rows, factor.cols) for factor in scheme.factors)
    provenance = Provenance(kind="search", parents=(scheme.digest,), relation="rows in another order")
    moved = (np.roll(u, by, axis=1), v, np.roll(w, by, axis=1))
    return Scheme.from_arrays(scheme.target, *moved, scheme.ring, provenance=provenance)


def carried(scheme: Scheme, target: Target) -> Scheme:
    """The scheme on another target, by a border or a cut.

    Raises:
        PlanError: neither leads there.
    """
    if scheme.target == target:
        return scheme
    larger = all(a <= b for a, b in zip(scheme.target.shape, target.shape, strict=True))
    return bordered(scheme, target) if larger else cut(scheme, target)


def _widen(
    fleet: Fleet,
    result: Chase,
    rung: Rung,
    steps: int,
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
        steps=steps,
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
    pool, results = list(starts), []
    for rung in rungs:
        target = parse_target(rung.target)
        setting = rung.setting or setting_for(target, ternary=ternary, objective=rung.objective)
        began = time.perf_counter()
        fleet = Fleet(
            [carried(scheme, target) for scheme in pool],
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
            _widen(fleet, result, rung, setting.steps, source, partial(on_find, rung))
        results.append(result)
        on_rung(rung, result, fleet)
        if not result.schemes:
            break
        pool = result.schemes
    return results

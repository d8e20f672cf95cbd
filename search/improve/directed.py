"""Directed walks: from the known schemes of a structured target towards fewer products and fewer full products."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...schemes_db import Provenance, Scheme, Target
from ...schemes_db.algebra import naive
from ...schemes_db.costs import full_and_half
from ..flipgraph.gpu.fleet import Fleet, from_many_roots
from ..flipgraph.policy import LONGEST, Policy, Selection
from ..runs.bounds import has_halves
from ..turn_fleet import Stop
from .events import OnEvent, Walking

Point = tuple[int, int]
"""The rank and the full products of a scheme."""

Aim = tuple[int, int]
"""Weight of a product, and the additional weight of a full product."""

AIMS: tuple[Aim, ...] = ((23, 31), (64, 1), (1, 64))
"""Aims, used in rotation: the exponent of schemes of about 22 full + 12 half products whose half products recurse; the
rank, then full products; full products, then the rank."""

POOL = 400
"""Maximum number of schemes of a point that are stored as starts."""

STARTS, OTHERS = 300, 20
"""Number of schemes of the best point that a walk starts from, and of every other point of the front."""

GATHERING = 0.25
"""Share of a turn that is spent on more schemes of the best score where few are known."""

WINNERS, PASSED, STANDING = 64, 3, 16
"""Schemes collected from a launch: of scores that reach the goal, of each score above it that is new, and of the
current schemes of walkers with a rank of the front."""

STEPS, TWIN_STEPS = 200_000, 2_000
"""Steps of a launch on a GPU (half a second at most), and of the twin on a processor."""

PLUS_AFTER = (10_000, 20_000, 50_000, 100_000)
MARGINS = (2, 3, 4, 6)
CHANCES = (0.1, 0.15, 0.3, 0.5)
EVERY = (0, 6, 12, 25)
"""Values from which the policy of a turn is drawn, with the three above: none was best for all targets."""


class Front:
    """Schemes of one target by (rank, full products)."""

    def __init__(self, schemes: Iterable[Scheme] = ()) -> None:
        self.pools: dict[Point, dict[str, Scheme]] = {}
        for scheme in schemes:
            self.add(scheme)

    def add(self, scheme: Scheme) -> bool:
        """Add a scheme; return False if it is known, or POOL schemes of its point are."""
        pool = self.pools.setdefault(point_of(scheme), {})
        if scheme.digest in pool or len(pool) >= POOL:
            return False
        pool[scheme.digest] = scheme
        return True

    def beaten(self, point: Point) -> bool:
        """Return whether a known scheme is at least as good in rank and full products."""
        return any(rank <= point[0] and full <= point[1] for rank, full in self.pools)

    @property
    def points(self) -> list[Point]:
        """Pareto front of the points, by rank."""
        found = sorted(self.pools)
        return [point for i, point in enumerate(found) if all(point[1] < full for _, full in found[:i])]

    def best(self, aim: Aim) -> Point:
        """Return the point of the lowest score; of several, the one of the lowest rank."""
        return min(self.pools, key=lambda point: (score_of(point, aim), point))

    def __str__(self) -> str:
        return ", ".join(f"{rank} = {full} + {rank - full}" for rank, full in self.points)


def point_of(scheme: Scheme) -> Point:
    return scheme.rank, full_and_half(scheme)[0]


def score_of(point: Point, aim: Aim) -> int:
    """Return the score that walkers minimise."""
    return aim[0] * point[0] + aim[1] * point[1]


@dataclass
class DirectedWalk:
    """Turns of walks on one target; their finds are added to its front.

    Attributes:
        front: schemes of the target modulo 2, at least one.
        bordered: schemes of the target made from smaller ones by a border, as further starts.
        device, walkers: see `Fleet`.
        on_find: called with each new scheme, unchecked.
        on_event: called with the progress after every launch.
        flips: number of accepted flips.
    """

    target: Target
    front: Front
    bordered: Sequence[Scheme] = ()
    seed: int = 0
    device: str = "cuda"
    walkers: int | None = None
    provenance: Provenance | None = None
    on_find: Callable[[Scheme], None] = lambda scheme: None
    on_event: OnEvent = lambda event: None
    stop: Stop = lambda: False
    flips: int = 0

    def turn(self, number: int, seconds: float, steps: int | None = None) -> None:
        """Walk for `seconds`, at least one launch, with the aim of this turn and a random policy.

        Raises:
            PlanError: the target does not fit, or there is no GPU.
            DeviceLostError: a GPU stopped responding; all earlier finds were reported.
        """
        end = time.perf_counter() + seconds
        steps = steps or (TWIN_STEPS if self.device == "cpu" else STEPS)
        rng, halves = np.random.default_rng([self.seed, number]), has_halves(self.target)
        aim = AIMS[number % len(AIMS)] if halves else (1, 0)
        policy = Policy(
            plus_after=int(rng.choice(PLUS_AFTER)),
            margin=int(rng.choice(MARGINS)),
            restart_after=LONGEST,
            cost="full" if halves else "",
            rank_weight=aim[0],
            cost_weight=aim[1],
            chance=float(rng.choice(CHANCES)),
        )
        best = self.front.best(aim)
        if len(self.front.pools[best]) < POOL // 2:
            goal = score_of(best, aim)
            above = [scheme for scheme in self._others(best) if score_of(point_of(scheme), aim) > goal]
            share = time.perf_counter() + GATHERING * seconds
            self._walk(above, policy, rng, share, max(1, steps // 5), gather=True)
        every = int(rng.choice(EVERY))
        best = self.front.best(aim)
        known = list(self.front.pools[best].values())
        starts = [known[i] for i in sorted(rng.permutation(len(known))[:STARTS].tolist())]
        starts += self._others(best, few=True)
        selected = replace(policy, selection=Selection(every, 0.2, 0.2) if every else Selection())
        self._walk(starts, selected, rng, end, steps, gather=False)

    def _others(self, best: Point, few: bool = False) -> list[Scheme]:
        """Return the starts other than the schemes of the best point."""
        known = [
            scheme
            for point in self.front.points
            if point != best
            for scheme in list(self.front.pools[point].values())[: OTHERS if few else POOL]
        ]
        plain = None if few else naive(self.target).over_z2()
        return [*([] if plain is None else [plain]), *known, *self.bordered]

    def _walk(
        self, starts: Sequence[Scheme], policy: Policy, rng: np.random.Generator, end: float, steps: int, gather: bool
    ) -> None:
        """Run a new fleet: to the lowest known score with `gather`, else below it."""
        if not starts:
            return
        # All fleets of a target have room for the naive scheme, so that they share compiled kernels.
        room = max(policy.margin, len(self.target.terms) - max(scheme.rank for scheme in starts))
        seed, aim = int(rng.integers(1 << 31)), (policy.rank_weight, policy.cost_weight)
        fleet = Fleet(starts, policy, seed=seed, walkers=self.walkers, room=room, device=self.device)
        seen: set[int] = set()
        while not fleet.launches or (time.perf_counter() < end and not self.stop()):
            best = self.front.best(aim)
            goal = score_of(best, aim) - (0 if gather else 1)
            if gather and len(self.front.pools[best]) >= POOL // 2:
                break
            before = fleet.flips
            fleet.launch(steps, goal)
            self.flips += fleet.flips - before
            text = f"{self.target}: {self.front}; {self.flips:.2e} flips, {fleet.flips_per_second / 1e6:.0f} M/s"
            self.on_event(Walking(self.target.name, text))
            self._look(fleet, goal, seen)
            if len(winners := fleet.found(goal)):
                fleet.rewind(winners)

    def _look(self, fleet: Fleet, goal: int, seen: set[int]) -> None:
        """Add to the front schemes that reached the goal, some of every new score, and some current ones."""
        for score in np.unique(fleet.score).tolist():
            if score > goal and score in seen:
                continue
            seen.add(score)
            there = np.flatnonzero(fleet.score == score)
            some = from_many_roots(there, fleet.roots)[:WINNERS] if score <= goal else there[:PASSED]
            for walker in some.tolist():
                self._take(fleet.scheme(walker, provenance=self.provenance))
        back = np.flatnonzero(np.isin(fleet.ranks(), [rank for rank, _ in self.front.points]))
        for walker in back[:: len(back) // STANDING + 1].tolist():
            self._take(fleet.scheme(walker, current=True, provenance=self.provenance))

    def _take(self, scheme: Scheme) -> None:
        point = point_of(scheme)
        if (point in self.front.points or not self.front.beaten(point)) and self.front.add(scheme):
            self.on_find(scheme)

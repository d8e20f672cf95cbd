"""Turns of an improvement: walks to lower ranks from stored schemes of a format and of its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...errors import PlanError
from ...schemes_db import Provenance, Scheme, Target
from ...schemes_db.algebra import naive
from ...schemes_db.composition import oriented
from ...schemes_db.provenance import Step
from ...schemes_db.recipes import in_order, shape_text
from ...schemes_db.run_record import RunRecord
from ...schemes_db.uneven import Shape
from ...version import __version__
from ..flipgraph.gpu.fleet import Fleet
from ..flipgraph.policy import Policy
from ..flipgraph.walkers import pack_start
from ..format_moves.symmetric import COPIES, invariant_copies, symmetric_starts
from ..groups.fleet import GroupFleet, saved_by_a_pair, splits
from ..groups.product_rank import InnerFormat
from ..leastsquares.fleet import GPU_TERMS, MOST_TERMS, SquaresFleet
from ..runs.distinct import DistinctPool
from ..runs.plan import gpu_setting_for, setting_for
from ..terms.packed import MAX_TERMS
from ..terms.words import is_wide
from ..triples.annealer import TripleFleet, has_triples
from ..turn_fleet import TurnFleet
from .catalogue import CatalogueView
from .collect import collect_below
from .cpu_fleet import CpuFleet
from .events import Control, TurnBegun, Walking
from .gaps import ROOM, Gap, is_walkable
from .history import (
    GROUPS,
    KEEN_SECONDS,
    LEAST_SQUARES,
    NESTED,
    SELECTING,
    SYMMETRIC,
    TRIPLES,
    VARIANTS,
    Choice,
    History,
    symmetric_routes,
)
from .islands import Islands
from .neighbours import BORDER, Route, beside, is_ternary, modulo_2, routes

NOT_REPEATABLE = "its walkers started from schemes that are not kept"
"""Reason why a turn cannot be repeated: it starts from pools and from finds of earlier turns and other processes."""

WANTED = 64
"""Number of schemes of a format to start from; missing ones are searched for MOMENT of the turn."""

MOMENT = 0.1
"""Share of a turn that is spent on finding more starts of one format: 64 of 5x5x7:127 take 7 s of an H200."""

FOUND = 256
"""Maximum number of finds of a rank in a turn: only some of them have a lift."""

PAIRS_MORE = 4
"""Most pairs that an outer scheme may need beyond those that it has for a route by groups."""


class _Other(NamedTuple):
    """A route without walks on the flip graph: its name in full, the rank it starts from, and what runs it."""

    name: str
    start: int
    fleet: Callable[[], TurnFleet]


class Descents:
    """Turns on formats, each by the route and the policy with the highest expected gain.

    Args:
        control: its configuration has ring "Z2", "Z" or "Q" for walks modulo 2, "ZT" for ternary ones; device "cpu" for
            threads of this processor, "twin" for the equivalent of a GPU on it, else GPUs; and the command in the
            provenance of finds. `stop` ends a turn.
        islands: the lowest schemes of earlier turns.
        walkers: None for the most that fit on the GPUs.

    Raises:
        PlanError: there are no walks over the ring.
    """

    def __init__(
        self, updater: CatalogueView, control: Control, islands: Islands | None = None, walkers: int | None = None
    ) -> None:
        config = control.config
        if config.ring not in ("Z2", "Z", "Q", "ZT"):
            raise PlanError(f"{config.ring} is not a ring of improvements: choose Z, Q, Z2 or ZT")
        self._updater, self._seed, self._device, self._command = updater, config.seed, config.device, config.command
        self._on_event, self._stop = control.on_event, control.stop
        self._setting = setting_for if config.device == "cpu" else gpu_setting_for
        self._ternary, self._jobs, self._walkers = config.ring == "ZT", control.jobs, walkers
        self._near: dict[tuple[Shape, int], list[Scheme]] = {}
        self._copies: dict[str, list[Scheme]] = {}
        self._islands = islands or Islands()

    def turn(
        self, gap: Gap, tried: int, seconds: float, history: History | None = None, longest: float = 0.0
    ) -> RunRecord | None:
        """Search a format for `seconds`, by the route and the policy with the highest expected gain.

        A search whose ranks still fall then goes on, to `longest` seconds.

        Returns the record of the turn, or None, without a search, where every route is a dead end.

        Raises:
            DeviceLostError: a GPU stopped responding; all earlier finds are stored.
        """
        walkable = is_walkable(gap.target, self._ternary)
        found = self._walking_routes(gap, tried, seconds) if walkable else []
        others = self._other_routes(gap, tried)
        if not found and not others and not is_wide(gap.target):
            found.append(Route("naive", [naive(gap.target)]))
        by_name = {route.name: route for route in found}
        lowest = {name: other.start for name, other in others.items()}
        lowest |= {name: min(start.rank for start in route.starts) for name, route in by_name.items()}
        variants = [one for one in VARIANTS if self._device != "cpu" or one not in SELECTING]
        worth = lowest
        if BORDER in lowest and not self._updater.pool(in_order(gap.target.shape), composed=False):
            # From compositions walks gain little: 4x5x9 fell from 137 to 132 by a border in 23 s of an H100, and not at
            # all by own, sum and reversal in as long each.
            walked = {name: start for name, start in lowest.items() if name not in (BORDER, "own")}
            worth = {name: other.start for name, other in others.items()} | {BORDER: min(lowest.values())} | walked
        choice = (history or History()).choose(gap, worth, variants)
        if choice is None:
            return None
        if choice.route in others:
            other = others[choice.route]
            self._on_event(TurnBegun(gap.target.name, f"{gap.target}: by {other.name}"))
            fleet = other.fleet()
            return self._record(fleet, fleet.STEPS, gap, Choice(choice.route, ""), other.start, seconds, longest)
        route = by_name[choice.route]
        symmetric = route.name in SYMMETRIC
        walk = SYMMETRIC.get(route.name) or ("flip-zt" if self._ternary else "flip")
        setting = self._setting(gap.target, walk)
        setting = replace(setting, policy=VARIANTS[choice.policy](setting.policy))
        starts, keen = route.starts, choice.policy == "keen"
        # From the naive scheme walks end at other schemes each time; those of the last turn are where it got stuck. A
        # keen selection would replace all others by these.
        if not keen and (not symmetric or lowest[route.name] < len(gap.target.terms)):
            starts = self._islands.starts(gap.target.name, route.name, starts, alone=symmetric)
        seed = self._seed + (tried << 32)
        walks: TurnFleet
        if self._device == "cpu":
            walks = CpuFleet(starts, walk, setting.policy, seed=seed, jobs=self._jobs)
        else:
            walks = self._gpu_fleet(starts, setting.policy, seed, walk)
        began = min(start.rank for start in starts)
        what = f"by {route.name}{f', {choice.policy}' if choice.policy else ''} from rank {began}"
        self._on_event(TurnBegun(gap.target.name, f"{gap.target}: {what}, starts: {len(starts)}"))
        if keen:
            seconds, longest = min(seconds, KEEN_SECONDS), min(longest, 2 * KEEN_SECONDS)
        record = self._record(walks, setting.steps, gap, choice, lowest[route.name], seconds, longest)
        self._islands.settle(gap.target.name, route.name, walks, began)
        return record

    def _other_routes(self, gap: Gap, tried: int) -> dict[str, _Other]:
        """Return the routes without walks on the flip graph of the format itself: they have no policies."""
        target, seed, over = gap.target, self._seed + (tried << 32), self._updater.over.name
        m, k, n = target.shape
        found = {}
        if not self._ternary and has_triples(target):
            # The best known rank is reached sooner than ranks between: more inner products leave more to arrange.
            found[TRIPLES] = _Other(
                TRIPLES, len(target.terms), lambda: TripleFleet(target, gap.known, seed=seed, walkers=self._jobs)
            )
        on_gpu = self._device.startswith("cuda")
        if over == "Q" and m * k * n <= (GPU_TERMS if on_gpu else MOST_TERMS):
            start = next(iter(self._updater.pool(in_order(target.shape))), None)
            device = self._device if on_gpu else "cpu"
            found[LEAST_SQUARES] = _Other(
                LEAST_SQUARES,
                len(target.terms),
                lambda: SquaresFleet(target, gap.rank - 1, start, seed=seed, device=device, stop=self._stop),
            )
        if over != "Z2" and (split := self._best_split(gap)) is not None:
            outer, inner, rank = split
            found[GROUPS] = _Other(
                f"{GROUPS} of {outer[0].target} over {shape_text(inner)} from rank {rank}",
                rank,
                lambda: GroupFleet(target, outer, InnerFormat(inner), seed=seed, walkers=self._jobs),
            )
        return found

    def _best_split(self, gap: Gap) -> tuple[list[Scheme], Shape, int] | None:
        """Return the outer schemes, the inner format and the rank of their product that is nearest below the gap's.

        Nearest means the fewest pairs of products more; None if it needs more than PAIRS_MORE.
        """
        best: tuple[float, list[Scheme], Shape, int] | None = None
        for outer, inner in splits(gap.target.shape):
            known = [
                oriented(one, outer) for one in self._updater.pool(in_order(outer), composed=False) if is_ternary(one)
            ]
            if not known or not (pair := saved_by_a_pair(inner)):
                continue
            rank = min(InnerFormat(inner).product_rank(one) for one in known)
            need = (rank - gap.rank + 1) / pair
            if 0 < need <= PAIRS_MORE and (best is None or need < best[0]):
                best = (need, known, inner, rank)
        return best and best[1:]

    def _record(
        self, fleet: TurnFleet, steps: int, gap: Gap, choice: Choice, start: int, seconds: float, longest: float
    ) -> RunRecord:
        """Advance a fleet, store its finds, and return the record of the turn; see `collect_below` for its seconds."""
        shape = in_order(gap.target.shape)
        found_ranks = collect_below(
            fleet,
            gap.rank - 1,
            steps=steps,
            seconds=seconds,
            longest=longest,
            count=FOUND,
            provenance=self._provenance(gap.target, choice.route, fleet.RELATION),
            on_find=self._updater.take,
            enough=lambda: self._stop() or self._updater.rank(self._updater.over.name, shape) <= gap.known,
            say=lambda text: self._on_event(Walking(gap.target.name, text)),
        )
        return RunRecord(
            command=self._command,
            target=gap.target.name,
            ring=self._updater.over.name,
            seed=self._seed,
            rounds=fleet.launches,
            flips=fleet.flips,
            seconds=fleet.seconds,
            finds=sum(found_ranks.values()),
            device="cuda" if self._device.startswith("cuda") else "cpu",
            route=choice.route,
            policy=choice.policy,
            start=start,
            rank=gap.rank,
            reached=min([int(fleet.score.min()), *found_ranks]),
        )

    def _walking_routes(self, gap: Gap, tried: int, seconds: float) -> list[Route]:
        """Return all routes by walks; on a GPU a part of `seconds` is spent on finding starts."""
        shape = in_order(gap.target.shape)
        if self._device != "cpu":
            others = {in_order(other) for by in (-1, 1) for other, _ in beside(gap.target, by)}
            for near in [*sorted(others), shape]:
                self._widen(near, seconds * MOMENT)
        rng = np.random.default_rng([self._seed, tried])
        found = routes(gap.target, self._known, rng, most=MAX_TERMS - ROOM, ternary=self._ternary)
        return found if self._ternary else found + self._symmetric_routes(gap.target)

    def _symmetric_routes(self, target: Target) -> list[Route]:
        """Return the routes by symmetric walks that a format has."""

        def stored(shape: Shape) -> list[Scheme]:
            found: list[Scheme] = []
            for scheme in modulo_2(self._updater.pool(shape, composed=False)):
                if len(found) < COPIES:
                    if scheme.digest not in self._copies:  # they are made once
                        self._copies[scheme.digest] = invariant_copies(scheme, np.random.default_rng(self._seed))
                    found += self._copies[scheme.digest]
            return found

        return [
            Route(name, symmetric_starts(target.shape, stored))
            if name == NESTED
            else Route(name, [pack_start(SYMMETRIC[name], target).to_scheme()])
            for name in symmetric_routes(target)
        ]

    def _gpu_fleet(self, starts: list[Scheme], policy: Policy, seed: int, walk: str) -> Fleet:
        device = "cpu" if self._device == "twin" else self._device
        return Fleet(starts, policy, seed=seed, walkers=self._walkers, walk=walk, device=device)

    def _known(self, shape: Shape) -> list[Scheme]:
        """Return the known schemes of a format."""
        known = self._updater.pool(shape)
        return known + [one for scheme in known[:1] for one in self._near.get((shape, scheme.rank), ())]

    def _widen(self, shape: Shape, seconds: float) -> None:
        """Find more schemes of a format, of the lowest known rank, by walks through higher ranks."""
        known = self._updater.pool(shape)
        if not known or not is_walkable(Target.general(*shape), self._ternary):
            return
        rank = known[0].rank
        if len(known) >= WANTED or (shape, rank) in self._near:
            return
        starts = [one for one in known if is_ternary(one)] if self._ternary else modulo_2(known)
        near = self._near.setdefault((shape, rank), [])
        if starts:
            walk = "flip-zt" if self._ternary else "flip"
            policy = self._setting(Target.general(*shape), walk).policy
            fleet = self._gpu_fleet(starts, policy, self._seed, walk)
            source = self._provenance(Target.general(*shape), "plus")
            fleet.widen(DistinctPool(starts), rank, WANTED, seconds=seconds, provenance=source, on_find=near.append)

    def _provenance(self, target: Target, route: str, relation: str = "") -> Provenance:
        ring = "ZT" if self._ternary else "Z2"
        values = {"target": target.name, "ring": ring, "device": self._device, "seed": str(self._seed), "route": route}
        return Provenance(
            kind="search",
            command=self._command,
            seed=self._seed,
            version=__version__,
            relation=relation
            or f"flip walk on {'a processor' if self._device == 'cpu' else 'a GPU'}, by way of {route}",
            steps=(Step("walk", (), tuple(values.items()), "", False, NOT_REPEATABLE),),
        )

"""State of a search by walks between its rounds: its walks and their strategy."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import Executor
from itertools import islice
from typing import Any

import numpy as np

from ...schemes_db import Scheme
from ..cluster.engine import engine_on
from ..flipgraph.walkers import Walks, WalkTerms, pack_start
from ..format_moves.corners import starts_from
from .bounds import broken
from .certify_find import Ancestry, provenance_of, sparse
from .config import MAX_WALKS
from .engine import Session
from .folder import Checkpoint
from .objectives import HALF_OBJECTIVES, score_of
from .plan import Setting
from .result import Find, Record, Unlifted
from .search_run import SearchRun
from .snapshot import Arrays
from .strategy import IndependentWalks, PopulationWalks, SearchStrategy

LIFTS_PER_STEP = 6
"""Maximum number of schemes that are tried for each one that a ladder passes on, as they must lift."""

STEPS_AT_ONCE = 4_000_000
"""Steps of all walks together on a processor before `stop` is asked: 0.2 s at 20 M steps a second."""

LEAST_STEPS = 1_000
"""Minimum number of steps of a walk at once: fewer would cost more in calls than in steps."""

NEAREST = 8
"""Number of lowest walks that are examined for `nearest`, if nothing was found."""

NEXT_SEED = 1_000_003
"""Increment of the seed for every return to the format before."""


class WalkRun(SearchRun):
    """A search by walks in progress."""

    _session: Session
    _strategy: SearchStrategy
    _setting: Setting
    _flips_before = 0
    _attempt = 0

    def _enter(self, stage: int, walkers: int = 0) -> None:
        """Set up the walks for a format of the run, from the schemes found in the one before.

        `walkers` is their number in a checkpoint, 0 without one: another GPU may fit more or fewer.
        """
        begin = time.perf_counter()
        config = self.config
        self._stage, aim, self._setting = stage, config.stages[stage], config.setting(stage)
        plan = self._setting.plan
        starts: list[WalkTerms] = list(config.starts)
        self._ancestries = [Ancestry((config.start.digest,) if config.start else ()), Ancestry()][: len(starts)]
        if stage:
            steps = [step for before, step in self._steps if before == stage - 1][-plan.passed :]
            pool: list[Any] = [pack_start(config.walk, config.stages[stage - 1].target, step.origin) for step in steps]
            rng = np.random.default_rng([config.seed, stage, self._attempt])
            moved = starts_from(pool, aim.target, rng if config.engine.by_format else None)
            starts = [one.terms for one in moved]
            self._ancestries = [
                Ancestry(tuple(steps[place].origin.digest for place in one.sources), one.relation) for one in moved
            ]
        engine, places = engine_on(config.device, config.cluster)
        seed, count = config.seed + NEXT_SEED * self._attempt, walkers or self._setting.walkers
        first = stage * self._setting.walkers
        session: Any = engine.start(Walks(config.walk, starts, self._setting.policy, seed, first, count), places)
        self._session, count, goal = session, session.walkers, aim.rank or 0
        if engine.by_format:
            self._strategy = PopulationWalks(session, starts, goal, plan, not self._last)
        else:
            turn = max(1, plan.turn // self._setting.steps)
            self._strategy = IndependentWalks(session, starts, goal, turn, plan, not self._last)
        self._start_ranks = np.array([terms.rank for terms in starts], dtype=np.int64)
        self._lowest = self._started = int(self._start_ranks.min())
        self._looked_at: dict[int, str] = {}
        if config.objective in HALF_OBJECTIVES:
            schemes = [*(found.scheme for found in self._finds), *(terms.to_scheme() for terms in starts)]
            self._least_score = min(score_of(config.objective, scheme) for scheme in schemes)
        # Both compile, so that the time limit covers the walks and finds only.
        self._session.advance(np.zeros(count, dtype=np.int64), 0, None)
        sparse(self._session.terms(np.zeros(1, dtype=np.int64))[0], config.target_policy)
        self._began += time.perf_counter() - begin

    def _take_up(self, checkpoint: Checkpoint) -> None:
        arrays: dict[str, Arrays] = {"session": {}, "strategy": {}}
        for name, array in checkpoint.arrays.items():
            part, _, rest = name.partition("/")
            arrays.setdefault(part, {})[rest] = array
        attempt, walkers = arrays["run"]["numbers"].tolist()
        if not 0 < walkers <= MAX_WALKS:
            raise ValueError(f"there are no {walkers} walks")
        if attempt != self._attempt or walkers != self._session.walkers:
            self._attempt = attempt
            self._enter(checkpoint.stage, walkers)
        self._session.take_arrays(arrays["session"])
        self._strategy.take_arrays(arrays["strategy"])
        self._flips_before = checkpoint.flips - self._session.flips

    def advance(self, executor: Executor | None) -> None:
        self._walk(executor)
        if self.broken:
            self._record(self._collected())
            return
        self._round += 1
        self._record(self._collected())
        self._strategy.after_round()
        if self._strategy.fruitless() and self._stage and self._attempt < self._setting.plan.tries:
            self._attempt += 1
            self._change_format(self._stage - 1)
        elif not self._last and self._strategy.idle():
            self._climb(executor)
        else:
            self.save(due=True)

    def _walk(self, executor: Executor | None) -> None:
        """Advance the walks by a round; on a processor in parts, so that `stop` may end it early."""
        goals, left = np.full(self._session.walkers, self._strategy.goal), self._setting.steps
        if self.config.engine.by_format:
            self._session.advance(goals, left, executor)
            return
        part = max(STEPS_AT_ONCE // max(self._session.walkers, 1), LEAST_STEPS)
        while left > 0:
            self._session.advance(goals, min(left, part), executor)
            left -= part
            if left > 0 and self.stop():
                self.broken = True
                return

    def _change_format(self, stage: int) -> None:
        self._flips_before += self._session.flips
        self._enter(stage)
        self.save()

    def _collected(self) -> list[Record]:
        """Return the finds of the walks in this round, in walk order."""
        config, rank = self.config, self.config.rank
        ranks = self._session.ranks
        lowest = int(ranks.min())
        if lowest < self._lowest:
            self._gained, self._lowest = self.seconds, lowest
        if not self._last:
            return []
        cheaper = rank is None and config.objective in HALF_OBJECTIVES  # by the objective, at any rank
        # Without a rank wanted, finds must be below all finds so far, not below all ranks seen: some do not lift.
        wanted = ranks < self._held if rank is None else ranks <= rank
        if cheaper:  # below the start of each walk, or below the highest start if that is unknown
            roots = self._strategy.roots(np.arange(self._session.walkers))
            wanted = ranks < np.where(roots < 0, self._start_ranks.max(), self._start_ranks[roots])
        records = []
        for walk in self._session.chosen(np.flatnonzero(wanted)).tolist():
            if rank is None and not cheaper and ranks[walk] >= self._held:
                continue
            if config.engine.by_format and rank is not None and len(self._finds) >= config.count:
                break  # a GPU may have hundreds
            terms = self._session.terms(np.array([walk]))[0]
            if cheaper and not self._is_cheaper(terms, walk):
                continue
            origin = self._scheme_of(terms, walk)
            above = rank is not None and origin.rank > rank  # possible if the score also counts full products
            if above or origin.digest in self._seen or broken(origin, config.target_policy):
                continue
            record = self._certified(origin, walk)
            if self._better(record.found):
                records.append(record)
                self._keep(record)
                if cheaper and isinstance(record.found, Find):
                    self._least_score = min(self._least_score, score_of(config.objective, record.found.scheme))
        return records

    def _is_cheaper(self, terms: WalkTerms, walk: int) -> bool:
        """Return whether a walk's terms are new and cost less, by the objective, than all starts and finds."""
        plain = terms.to_scheme()
        known, self._looked_at[walk] = self._looked_at.get(walk), plain.digest
        return known != plain.digest and score_of(self.config.objective, plain) < self._least_score

    def _nearest(self) -> Find | Unlifted | None:
        """Return a scheme of the lowest rank of the walks for the target, one that lifts if there is one.

        None if no walk is below its start.
        """
        ranks = self._session.ranks
        order = np.argsort(ranks, kind="stable")[:NEAREST]
        if not self._last or not len(order) or ranks[order[0]] >= self._started:
            return None
        lost: Unlifted | None = None
        for walk in order[ranks[order] == ranks[order[0]]].tolist():
            origin = self._scheme_of(self._session.terms(np.array([walk]))[0], walk)
            if broken(origin, self.config.target_policy):
                continue
            found = self._certified(origin, walk).found
            if isinstance(found, Find):
                return found
            lost = lost or found
        return lost

    @property
    def _held(self) -> int:
        """Lowest rank among the starts and the finds."""
        return min([self._started, *(found.scheme.rank for found in self._finds)])

    def _scheme_of(self, terms: WalkTerms, walk: int, root: int | None = None) -> Scheme:
        """Return the scheme of a walk's terms, derived from the start of the walk, or from start `root`."""
        places = np.array([walk])
        remark = f"walk {walk}, round {self._round}, step {self._session.steps(places)[0]}"
        root = int(self._strategy.roots(places)[0]) if root is None else root
        scheme = sparse(terms, self.config.target_policy).to_scheme()
        return scheme.replace(provenance=provenance_of(self.config, scheme, self._ancestry(root), remark, self.seconds))

    def _ancestry(self, root: int) -> Ancestry:
        """Return the ancestry of schemes from a start of this format; -1 means any of them."""
        if root >= 0:
            return self._ancestries[root]
        if not self._stage:
            return Ancestry(self._ancestries[0].parents, "from it or from naive")
        before = self.config.stages[self._stage - 1]
        return Ancestry((), f"{len(self._ancestries)} starts from schemes {before}")

    def _climb(self, executor: Executor | None) -> None:
        """Collect the starts of the next format, and proceed to it."""
        passed = self._setting.plan.passed
        members = islice(self._strategy.members(), LIFTS_PER_STEP * passed)
        records: list[Record] = []
        digests = {step.origin.digest for stage, step in self._steps if stage == self._stage and self._attempt}
        while len(records) < passed and (some := list(islice(members, passed))):
            origins = [self._scheme_of(terms, 0, root) for terms, root in some]
            fresh = list({origin.digest: origin for origin in origins if origin.digest not in digests}.values())
            digests |= {origin.digest for origin in fresh}
            mapped = (map if executor is None else executor.map)(lambda origin: self._certified(origin, 0), fresh)
            records += [record for record in mapped if isinstance(record.found, Find)]
        for record in records[:passed]:
            self._keep(record)
        self._record(records[:passed])
        self._change_format(self._stage + 1)

    def _arrays(self) -> Arrays:
        numbers = np.array([self._attempt, self._session.walkers], dtype=np.int64)
        parts = {
            "session": self._session.to_arrays(),
            "strategy": self._strategy.to_arrays(),
            "run": {"numbers": numbers},
        }
        return {f"{part}/{name}": array for part, some in parts.items() for name, array in some.items()}

    @property
    def _flips(self) -> int:
        return self._flips_before + self._session.flips

    def _ranks(self) -> dict[int, int]:
        return dict(Counter(self._session.lowest.tolist())) if self._last else {}

    def _sizes(self) -> dict[int, int]:
        return self._strategy.sizes()

"""The state of a search by walks between its rounds: its walks and its pools."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import Executor
from itertools import islice
from typing import Any

from ..schemes_db import Scheme
from .bounds import broken
from .course import Course
from .fleet import Fleet, make_fleet
from .folder import Checkpoint
from .passages import carried
from .pools import Pools
from .record import Record
from .result import Find
from .snapshot import Arrays
from .strategy import Alone, Strategy
from .taking import Ancestry, sparse, taken, told
from .walker import Terms, pack_start

LIFTS_PER_STEP = 6
"""Schemes that are tried for each one that a ladder passes on, where they must lift."""


class Rounds(Course):
    """A search by walks in progress."""

    _fleet: Fleet
    _strategy: Strategy
    _flips_before = 0

    def _enter(self, stage: int) -> None:
        """Set walks and pools up for a format of the run, from the schemes that came out of the one before."""
        begin = time.perf_counter()
        config = self.config
        self._stage, aim = stage, config.stages[stage]
        starts: list[Terms] = [config.terms]
        self._ancestries = [Ancestry((config.start.digest,) if config.start else ())]
        if stage:
            steps = [step for before, step in self._steps if before == stage - 1]
            pool: list[Any] = [pack_start(config.walk, config.stages[stage - 1].target, step.origin) for step in steps]
            moved = carried(pool, aim.target, config.moves)
            starts = [one.terms for one in moved]
            self._ancestries = [
                Ancestry(tuple(steps[place].origin.digest for place in one.sources), one.relation) for one in moved
            ]
        longest = max(starts, key=lambda terms: terms.rank)  # the others fit where it does
        self._fleet = make_fleet(
            config.device, config.walk, [longest], config.seed, stage * config.walks, config.walks, config.patience
        )
        if config.plan.large == 0:
            self._strategy = Alone(
                starts, config.walks, aim.rank or 0, config.steps, config.plan, gather=not self._last
            )
        else:
            self._strategy = Pools(starts, config.walks, aim.rank or 0, config.seed, config.plan)
        self._strategy.begin(self._fleet)
        self._lowest = self._started = min(terms.rank for terms in starts)
        # Both compile, so that the clock counts walking and what is found only.
        self._fleet.advance([0] * config.walks, 0, None)
        sparse(self._fleet.terms(0), config.patience)
        self._began += time.perf_counter() - begin

    def _take_up(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint."""
        arrays: dict[str, Arrays] = {"fleet": {}, "strategy": {}}
        for name, array in checkpoint.arrays.items():
            part, _, rest = name.partition("/")
            arrays[part][rest] = array
        self._fleet.take_arrays(arrays["fleet"])
        self._strategy.take_arrays(arrays["strategy"])
        self._flips_before = checkpoint.flips - self._fleet.flips

    def advance(self, executor: Executor | None) -> None:
        """One round, and what it brought."""
        self._fleet.advance(self._strategy.goals(), self.config.steps, executor)
        self._round += 1
        self._record(self._collected())
        self._strategy.after_round(self._fleet)
        if not self._last and self._strategy.idle():
            self._climb(executor)
            self.save()
        else:
            self.save(due=True)

    def _collected(self) -> list[Record]:
        """What the walks found in this round, in walk order."""
        records = []
        config, rank = self.config, self.config.rank
        for walk, reached in enumerate(self._fleet.ranks):
            if reached < self._lowest:
                self._gained = self.seconds
            # Without a rank, below all finds so far and not all that was seen: some do not lift.
            wanted = reached <= rank if rank is not None else reached < self._held
            self._lowest = min(self._lowest, reached)
            if wanted and self._last:
                origin = self._told(self._fleet.terms(walk), walk)
                if origin.digest not in self._seen and not broken(origin, config.patience):
                    record = self._taken(origin, walk)
                    if self._better(record.found):
                        records.append(record)
                        self._keep(record)
        return records

    @property
    def _held(self) -> int:
        """The lowest rank among the finds, that of the start where there are none."""
        return min([self._started, *(found.scheme.rank for found in self._finds)])

    def _told(self, terms: Terms, walk: int, root: int | None = None) -> Scheme:
        """The scheme of what a walk brought; it comes from the start of the walk, or from another root."""
        remark = f"walk {walk}, round {self._round}, step {self._fleet.steps(walk)}"
        ancestry = self._ancestries[self._strategy.root(walk) if root is None else root]
        return told(self.config, sparse(terms, self.config.patience), ancestry, remark, self.seconds)

    def _taken(self, origin: Scheme, walk: int) -> Record:
        return Record(self._round, walk, taken(self.config, origin), self._stage)

    def _climb(self, executor: Executor | None) -> None:
        """Take what the next format starts from, and go on to it."""
        passed = self.config.plan.passed
        members = islice(self._strategy.members(self._fleet), LIFTS_PER_STEP * passed)
        records: list[Record] = []
        digests: set[str] = set()
        while len(records) < passed and (some := list(islice(members, passed))):
            origins = [self._told(terms, 0, root) for terms, root in some]
            fresh = list({origin.digest: origin for origin in origins if origin.digest not in digests}.values())
            digests |= {origin.digest for origin in fresh}
            mapped = (map if executor is None else executor.map)(lambda origin: self._taken(origin, 0), fresh)
            records += [record for record in mapped if isinstance(record.found, Find)]
        for record in records[:passed]:
            self._keep(record)
        self._record(records[:passed])
        self._flips_before += self._fleet.flips
        self._enter(self._stage + 1)

    def _arrays(self) -> Arrays:
        parts = {"fleet": self._fleet.to_arrays(), "strategy": self._strategy.to_arrays()}
        return {f"{part}/{name}": array for part, some in parts.items() for name, array in some.items()}

    @property
    def _flips(self) -> int:
        return self._flips_before + self._fleet.flips

    def _ranks(self) -> dict[int, int]:
        return dict(Counter(self._fleet.lowest)) if self._last else {}

    def _sizes(self) -> dict[int, int]:
        return self._strategy.sizes()

"""The state of a search between rounds: its walks, its pools, its finds, and where it keeps them."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import Executor
from itertools import islice
from typing import Any

from ..schemes_db import Scheme
from .config import RunConfig
from .fleet import Fleet, make_fleet
from .folder import Checkpoint, RunFolder
from .ladder import carried
from .objectives import score_of
from .pools import Pools
from .record import Record
from .result import Find, Progress, Result, Unlifted
from .snapshot import Arrays
from .strategy import Alone, Strategy
from .taking import Ancestry, origin_of, taken
from .walker import Terms, pack_start

CHECKPOINT_SECONDS = 5.0
"""Seconds between checkpoints; finds are kept at once, so that a crash costs only walking."""

CHECKPOINT_SHARE = 20
"""A checkpoint that took t seconds is followed by at least so many t without one."""

LIFTS_PER_STEP = 6
"""Schemes that are tried for each one that a ladder passes on, where they must lift."""


class Rounds:
    """A run in progress. With a folder it starts from the checkpoint there, if there is one.

    Raises:
        PlanError: the walks do not fit the target.
        RunFolderError: the folder is damaged.
    """

    _fleet: Fleet
    _strategy: Strategy

    def __init__(self, config: RunConfig, folder: RunFolder | None = None) -> None:
        self.config, self.folder = config, folder
        self._round, self._gained, self._flips_before = 0, 0.0, 0
        self._finds: list[Find] = []
        self._unlifted: list[Unlifted] = []
        self._steps: list[tuple[int, Find]] = []
        self._seen: set[str] = set()
        self._written: set[tuple[int, str]] = set()
        self._began = time.perf_counter()
        checkpoint = folder.checkpoint() if folder else None
        for record in folder.records() if folder else []:
            self._written.add(_key(record))
            if checkpoint is not None and record.round <= checkpoint.round:
                self._keep(record)
        self._enter(checkpoint.stage if checkpoint else 0)
        if checkpoint is not None:
            self._take_up(checkpoint)
        self._began = time.perf_counter() - (checkpoint.seconds if checkpoint else 0.0)
        self._saved = time.perf_counter()
        self._pause = CHECKPOINT_SECONDS

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
            moved = carried(pool, aim.target)
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
        self._lowest = min(terms.rank for terms in starts)
        self._fleet.advance([0] * config.walks, 0, None)  # compiles, so that the clock counts walking only
        self._began += time.perf_counter() - begin

    def _take_up(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint."""
        arrays: dict[str, Arrays] = {"fleet": {}, "strategy": {}}
        for name, array in checkpoint.arrays.items():
            part, _, rest = name.partition("/")
            arrays[part][rest] = array
        self._fleet.take_arrays(arrays["fleet"])
        self._strategy.take_arrays(arrays["strategy"])
        self._round, self._gained, self._lowest = checkpoint.round, checkpoint.gained, checkpoint.lowest
        self._flips_before = checkpoint.flips - self._fleet.flips

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    @property
    def done(self) -> bool:
        """Whether a limit is reached."""
        config = self.config
        return (
            (config.rounds is not None and self._round >= config.rounds)
            or (config.seconds is not None and self.seconds >= config.seconds)
            or (config.rank is not None and config.objective == "rank" and len(self._finds) >= config.count)
        )

    @property
    def _last(self) -> bool:
        """Whether the target itself is worked on."""
        return self._stage == len(self.config.stages) - 1

    def advance(self, executor: Executor | None) -> None:
        """One round, and what it brought."""
        self._fleet.advance(self._strategy.goals(), self.config.steps, executor)
        self._round += 1
        self._record(self._collected())
        self._strategy.after_round(self._fleet)
        if not self._last and self._strategy.idle():
            self._climb(executor)
            self.save()
        elif time.perf_counter() - self._saved >= self._pause:
            self.save()

    def _collected(self) -> list[Record]:
        """What the walks found in this round, in walk order."""
        records = []
        rank = self.config.rank
        for walk, reached in enumerate(self._fleet.ranks):
            if reached < self._lowest:
                self._gained = self.seconds
            wanted = reached <= rank if rank is not None else reached < self._lowest
            self._lowest = min(self._lowest, reached)
            if wanted and self._last:
                origin = origin_of(self._fleet.terms(walk))
                if origin.digest not in self._seen:
                    record = self._taken(origin, walk, self._strategy.root(walk))
                    if self._better(record.found):
                        records.append(record)
                        self._keep(record)
        return records

    def _better(self, found: Find | Unlifted) -> bool:
        """Whether a find is one by the run's objective."""
        name = self.config.objective
        if name == "rank" or isinstance(found, Unlifted) or not self._finds:
            return True
        return score_of(name, found.scheme) < score_of(name, self._finds[-1].scheme)

    def _taken(self, origin: Scheme, walk: int, root: int) -> Record:
        remark = f"walk {walk}, round {self._round}, step {self._fleet.steps(walk)}"
        found = taken(self.config, origin, self._ancestries[root], remark, self.seconds)
        return Record(self._round, walk, found, self._stage)

    def _climb(self, executor: Executor | None) -> None:
        """Take what the next format starts from, and go on to it."""
        passed = self.config.plan.passed
        members = islice(self._strategy.members(self._fleet), LIFTS_PER_STEP * passed)
        records: list[Record] = []
        digests: set[str] = set()
        while len(records) < passed and (some := list(islice(members, passed))):
            fresh = [(origin_of(terms), root) for terms, root in some]
            fresh = [(origin, root) for origin, root in fresh if origin.digest not in digests]
            digests |= {origin.digest for origin, _ in fresh}
            mapped = (map if executor is None else executor.map)(lambda pair: self._taken(pair[0], 0, pair[1]), fresh)
            records += [record for record in mapped if isinstance(record.found, Find)]
        for record in records[:passed]:
            self._keep(record)
        self._record(records[:passed])
        self._flips_before += self._fleet.flips
        self._enter(self._stage + 1)

    def _record(self, records: list[Record]) -> None:
        """Write what is new into the folder, if there is one."""
        if self.folder is not None:
            fresh = [record for record in records if _key(record) not in self._written]
            self.folder.append(fresh)
            self._written |= {_key(record) for record in fresh}

    def _keep(self, record: Record) -> None:
        found = record.found
        if record.stage < len(self.config.stages) - 1:
            if isinstance(found, Find):
                self._steps.append((record.stage, found))
            return
        self._seen.add(found.origin.digest)
        if isinstance(found, Find):
            self._finds.append(found)
        else:
            self._unlifted.append(found)

    def save(self) -> None:
        """Write a checkpoint into the folder, if there is one."""
        if self.folder is None:
            return
        start = time.perf_counter()
        parts = {"fleet": self._fleet.to_arrays(), "strategy": self._strategy.to_arrays()}
        arrays = {f"{part}/{name}": array for part, some in parts.items() for name, array in some.items()}
        facts = (self._stage, self._round, self.seconds, self._gained, self._lowest, self._flips, self.done)
        self.folder.save(Checkpoint(*facts, arrays))
        self._saved = time.perf_counter()
        self._pause = max(CHECKPOINT_SECONDS, CHECKPOINT_SHARE * (self._saved - start))

    @property
    def _flips(self) -> int:
        return self._flips_before + self._fleet.flips

    def progress(self) -> Progress:
        """How the run stands."""
        seconds = self.seconds
        return Progress(
            self.config.stages[self._stage].target,
            self._round,
            self._flips,
            seconds,
            self._lowest,
            seconds - self._gained,
            len(self._finds),
            self._strategy.sizes(),
        )

    def result(self) -> Result:
        """What the run has come to."""
        return Result(
            self.config.goal,
            self.config.over,
            self.config.seed,
            tuple(self._finds),
            tuple(self._unlifted),
            dict(Counter(self._fleet.lowest)) if self._last else {},
            self._round,
            self._flips,
            self.seconds,
            interrupted=False,
            steps=tuple(step for _, step in self._steps),
        )


def _key(record: Record) -> tuple[int, str]:
    return record.stage, record.found.origin.digest

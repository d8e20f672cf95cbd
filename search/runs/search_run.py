"""A search in progress, whatever its method: limits, the clock, what it found, and where it keeps that."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from concurrent.futures import Executor

from .config import RunConfig
from .folder import Checkpoint, RunFolder
from .objectives import score_of
from .record import Record
from .result import Find, Progress, Result, Unlifted
from .snapshot import Arrays

CHECKPOINT_SECONDS = 5.0
"""Seconds between checkpoints; finds are kept at once, so that a crash costs only walking."""

CHECKPOINT_SHARE = 20
"""A checkpoint that took t seconds is followed by at least so many t without one."""

RATE_SECONDS = 10.0
"""The rate of a `Progress` is that of the last so many seconds."""


class SearchRun(ABC):
    """A run in progress. With a folder it starts from the checkpoint there, if there is one.

    Raises:
        PlanError: the walks do not fit the target.
        RunFolderError: the folder is damaged.
    """

    def __init__(self, config: RunConfig, folder: RunFolder | None = None) -> None:
        self.config, self.folder = config, folder
        self._stage, self._round, self._gained, self._lowest = 0, 0, 0.0, config.start_rank
        self._finds: list[Find] = []
        self._unlifted: list[Unlifted] = []
        self._steps: list[tuple[int, Find]] = []
        self._seen: set[str] = set()
        self._written: set[tuple[int, str]] = set()
        self._setup: defaultdict[str, float] = defaultdict(float)
        self._began = time.perf_counter()
        checkpoint = folder.checkpoint() if folder else None
        for record in folder.records() if folder else []:
            self._written.add(_key(record))
            if checkpoint is not None and record.round <= checkpoint.round:
                self._keep(record)
        self._enter(checkpoint.stage if checkpoint else 0)
        if checkpoint is not None:
            self._round, self._gained, self._lowest = checkpoint.round, checkpoint.gained, checkpoint.lowest
            self._take_up(checkpoint)
        self._began = time.perf_counter() - (checkpoint.seconds if checkpoint else 0.0)
        self._saved = time.perf_counter()
        self._pause = CHECKPOINT_SECONDS
        self._seen_flips: deque[tuple[float, int]] = deque()

    @abstractmethod
    def advance(self, executor: Executor | None) -> None:
        """One round, and what it brought."""

    @abstractmethod
    def _enter(self, stage: int) -> None:
        """Set up what works on a format of the run."""

    @abstractmethod
    def _take_up(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint."""

    @abstractmethod
    def _arrays(self) -> Arrays:
        """All that changes, for a checkpoint."""

    @property
    @abstractmethod
    def _flips(self) -> int:
        """Flips so far."""

    def _nearest(self) -> Find | Unlifted | None:
        """The lowest scheme that was reached, where nothing was found."""
        return None

    def _ranks(self) -> dict[int, int]:
        """Of each rank how many walks have it as their lowest."""
        return {self._lowest: 1}

    def _sizes(self) -> dict[int, int]:
        """How many schemes of which rank are gathered."""
        return {}

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

    def _better(self, found: Find | Unlifted) -> bool:
        """Whether a find is one by the run's objective."""
        name = self.config.objective
        if name == "rank" or isinstance(found, Unlifted) or not self._finds:
            return True
        return score_of(name, found.scheme) < score_of(name, self._finds[-1].scheme)

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

    def save(self, *, due: bool = False) -> None:
        """Write a checkpoint into the folder, if there is one; with `due`, only if the last is old enough."""
        start = time.perf_counter()
        if self.folder is None or (due and start - self._saved < self._pause):
            return
        facts = (self._stage, self._round, self.seconds, self._gained, self._lowest, self._flips, self.done)
        self.folder.save(Checkpoint(*facts, self._arrays()))
        self._saved = time.perf_counter()
        self._pause = max(CHECKPOINT_SECONDS, CHECKPOINT_SHARE * (self._saved - start))

    def progress(self) -> Progress:
        """How the run stands."""
        seconds, flips = self.seconds, self._flips
        self._seen_flips.append((seconds, flips))
        while len(self._seen_flips) > 2 and seconds - self._seen_flips[1][0] >= RATE_SECONDS:
            self._seen_flips.popleft()
        since, before = self._seen_flips[0] if len(self._seen_flips) > 1 else (0.0, 0)
        return Progress(
            self.config.stages[self._stage].target,
            self._round,
            flips,
            seconds,
            self._lowest,
            seconds - self._gained,
            len(self._finds),
            self._sizes(),
            (flips - before) / max(seconds - since, 1e-9),
            self.config.stages[self._stage].rank,
            None if self.config.seconds is None else self.config.seconds - seconds,
        )

    def result(self) -> Result:
        """What the run has reached."""
        return Result(
            self.config.final_target,
            self.config.output_ring,
            self.config.seed,
            tuple(self._finds),
            tuple(self._unlifted),
            self._ranks(),
            self._round,
            self._flips,
            self.seconds,
            interrupted=False,
            steps=tuple(step for _, step in self._steps),
            nearest=None if self._finds else self._nearest(),
            setup=dict(self._setup),
        )


def _key(record: Record) -> tuple[int, str]:
    return record.stage, record.found.origin.digest

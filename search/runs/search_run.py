"""State of a search that is common to all methods: limits, elapsed time, finds and folder."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from concurrent.futures import Executor

from ...schemes_db import Scheme
from ..turn_fleet import Stop
from .certify_find import certified
from .config import RunConfig
from .folder import Checkpoint, RunFolder
from .locked_folder import intact
from .objectives import score_of
from .result import Find, Progress, Record, Result, Unlifted
from .snapshot import Arrays

CHECKPOINT_SECONDS = 5.0
"""Seconds between checkpoints; finds are written at once, so that a crash loses only steps of walks."""

CHECKPOINT_SHARE = 20
"""Minimum ratio of the time between checkpoints to the time that the last one took."""

RATE_SECONDS = 10.0
"""Seconds over which the rate of a `Progress` is measured."""


class SearchRun(ABC):
    """A run in progress. With a folder it starts from the checkpoint there, if there is one.

    Attributes:
        stop: called between parts of a round; True ends the round early.
        broken: True after a round that ended early: the walks' state is then not to be saved.

    Raises:
        PlanError: the walks do not fit the target.
        RunFolderError: the folder is damaged.
    """

    def __init__(self, config: RunConfig, folder: RunFolder | None = None) -> None:
        self.config, self.folder = config, folder
        self.stop: Stop = lambda: False
        self.broken = False
        self._stage, self._round, self._gained, self._lowest = 0, 0, 0.0, config.start_rank
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
        if folder is not None and checkpoint is not None:
            self._round, self._gained, self._lowest = checkpoint.round, checkpoint.gained, checkpoint.lowest
            with intact(folder.path / "state.npz"):
                self._take_up(checkpoint)
        self._began = time.perf_counter() - (checkpoint.seconds if checkpoint else 0.0)
        self._saved = time.perf_counter()
        self._pause = CHECKPOINT_SECONDS
        self._seen_flips: deque[tuple[float, int]] = deque()

    @abstractmethod
    def advance(self, executor: Executor | None) -> None:
        """Run one round and collect its finds."""

    @abstractmethod
    def _enter(self, stage: int) -> None:
        """Set up the search of a format of the run."""

    @abstractmethod
    def _take_up(self, checkpoint: Checkpoint) -> None:
        """Restore the state of a checkpoint."""

    @abstractmethod
    def _arrays(self) -> Arrays:
        """Return all mutable state, for a checkpoint."""

    @property
    def _flips(self) -> int:
        """Flips so far; 0 for methods without flips, or that do not count them."""
        return 0

    def _nearest(self) -> Find | Unlifted | None:
        """Return the lowest scheme that was reached, for runs without finds."""
        return None

    def _ranks(self) -> dict[int, int]:
        """Return the number of walks with each lowest rank."""
        return {self._lowest: 1}

    def _sizes(self) -> dict[int, int]:
        """Return the number of stored schemes of each rank."""
        return {}

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    @property
    def done(self) -> bool:
        """True if a limit is reached."""
        config = self.config
        return (
            (config.rounds is not None and self._round >= config.rounds)
            or (config.seconds is not None and self.seconds >= config.seconds)
            or (config.rank is not None and config.objective == "rank" and len(self._finds) >= config.count)
        )

    @property
    def _last(self) -> bool:
        """True if the current format is the target itself."""
        return self._stage == len(self.config.stages) - 1

    def _better(self, found: Find | Unlifted) -> bool:
        """Return whether a find improves the run's objective; always True for the first and for objective `rank`."""
        name = self.config.objective
        if name == "rank" or isinstance(found, Unlifted) or not self._finds:
            return True
        return score_of(name, found.scheme) < score_of(name, self._finds[-1].scheme)

    def _record(self, records: list[Record]) -> None:
        """Write new records to the folder, if there is one."""
        if self.folder is not None:
            fresh = [record for record in records if _key(record) not in self._written]
            self.folder.append_lines("found.jsonl", [record.to_line() for record in fresh])
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

    def _certified(self, origin: Scheme, walk: int) -> Record:
        """Certify and lift a scheme that a walk, or another search, of this round found."""
        return Record(self._round, walk, certified(self.config, origin), self._stage)

    def save(self, *, due: bool = False) -> None:
        """Write a checkpoint to the folder, if there is one; with `due`, only if the last is old enough."""
        start = time.perf_counter()
        if self.folder is None or (due and start - self._saved < self._pause):
            return
        facts = (self._stage, self._round, self.seconds, self._gained, self._lowest, self._flips, self.done)
        self.folder.save(Checkpoint(*facts, self._arrays()))
        self._saved = time.perf_counter()
        self._pause = max(CHECKPOINT_SECONDS, CHECKPOINT_SHARE * (self._saved - start))

    def progress(self) -> Progress:
        seconds, flips = self.seconds, self._flips
        self._seen_flips.append((seconds, flips))
        while len(self._seen_flips) > 2 and seconds - self._seen_flips[1][0] >= RATE_SECONDS:
            self._seen_flips.popleft()
        since, before = self._seen_flips[0] if len(self._seen_flips) > 1 else (0.0, 0)
        stage, limit = self.config.stages[self._stage], self.config.seconds
        spent, reached = (self._round, flips, seconds), (self._lowest, seconds - self._gained)
        rate, left = (flips - before) / max(seconds - since, 1e-9), None if limit is None else limit - seconds
        return Progress(stage.target, *spent, *reached, len(self._finds), self._sizes(), rate, stage.rank, left)

    def result(self, *, nearest: bool = True) -> Result:
        """Return the result of the run so far; without `nearest` no further scheme is lifted and certified."""
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
            nearest=self._nearest() if nearest and not self._finds else None,
            objective=self.config.objective,
        )


def _key(record: Record) -> tuple[int, str]:
    return record.stage, record.found.origin.digest

"""The state of a search between rounds: its walks, its finds, and where it keeps them."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from concurrent.futures import Executor

from ..schemes_db import Z2, Provenance, Scheme
from ..verify import certify
from .config import RunConfig
from .folder import Checkpoint, RunFolder
from .lifting import lift
from .packed import PackedTerms
from .record import Record
from .result import Find, Progress, Result, Unlifted
from .snapshot import restore, snapshot
from .sparsify import sparsified
from .walker import Walker, make_walker

CHECKPOINT_SECONDS = 5.0
"""Seconds between checkpoints; finds are kept at once, so that a crash costs only walking."""

CHECKPOINT_SHARE = 20
"""A checkpoint that took t seconds is followed by at least so many t without one."""


class Rounds:
    """A run in progress. With a folder it starts from the checkpoint there, if there is one.

    Raises:
        PlanError: the walks do not fit the target.
        RunFolderError: the folder is damaged.
    """

    def __init__(self, config: RunConfig, folder: RunFolder | None = None) -> None:
        self.config, self.folder = config, folder
        self._walkers = [walker_of(config, index) for index in range(config.walks)]
        walker_of(config, 0).advance(config.rank or 0, 1)  # compiles, so that the clock counts walking only
        self._target, self._ring = config.goal, config.over
        self._round, self._gained, self._lowest = 0, 0.0, config.start_rank
        self._finds: list[Find] = []
        self._unlifted: list[Unlifted] = []
        self._seen: set[str] = set()
        self._written: set[str] = set()
        before = 0.0
        if folder is not None:
            before = self._load(folder)
        self._began = time.perf_counter() - before
        self._saved = time.perf_counter()
        self._pause = CHECKPOINT_SECONDS

    def _load(self, folder: RunFolder) -> float:
        """Take up the folder's last checkpoint; returns the seconds that the run had taken by then."""
        checkpoint = folder.checkpoint()
        records = folder.records()
        self._written = {_key(record.found) for record in records}
        if checkpoint is None:
            return 0.0
        restore(self._walkers, checkpoint.arrays)
        self._round, self._gained, self._lowest = checkpoint.round, checkpoint.gained, checkpoint.lowest
        for record in records:
            if record.round <= self._round:
                self._keep(record.found)
        return checkpoint.seconds

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
            or (config.rank is not None and len(self._finds) >= config.count)
        )

    def advance(self, pool: Executor, jobs: int) -> None:
        """One round, and its finds."""
        goal, steps = self.config.rank or 0, self.config.steps
        if jobs == 1:
            for walker in self._walkers:
                walker.advance(goal, steps)
        else:
            list(pool.map(lambda walker: walker.advance(goal, steps), self._walkers))
        self._round += 1
        self._collect()
        if self.folder is not None and time.perf_counter() - self._saved >= self._pause:
            self.save()

    def _collect(self) -> None:
        """Take what the walks found in this round, in walk order."""
        records = []
        rank = self.config.rank
        for index, walker in enumerate(self._walkers):
            if walker.rank < self._lowest:
                self._gained = self.seconds
            wanted = walker.rank <= rank if rank is not None else walker.rank < self._lowest
            self._lowest = min(self._lowest, walker.rank)
            if wanted:
                found = self._take(index, walker)
                if found is not None and _key(found) not in self._written:
                    records.append(Record(self._round, index, found))
                if rank is not None:
                    walker.rewind()
        if self.folder is not None:
            self.folder.append(records)
            self._written |= {_key(record.found) for record in records}

    def _take(self, index: int, walker: Walker) -> Find | Unlifted | None:
        """Certify one find, and lift it if a ring other than the walk's is wanted; None if it is known."""
        terms = walker.terms()
        origin = (sparsified(terms) if isinstance(terms, PackedTerms) else terms).to_scheme()
        if origin.digest in self._seen:
            return None
        certificate = certify(origin)
        origin = origin.replace(provenance=self._provenance(index, walker, certificate.version))
        found: Find | Unlifted
        if origin.ring is not Z2 or self._ring is Z2:
            found = Find(origin, certificate, origin, certificate)
        else:
            lifted = lift(origin, ring=self._ring, seed=self.config.seed)
            if lifted.scheme is None or lifted.certificate is None:
                found = Unlifted(origin, lifted.reason)
            else:
                found = Find(lifted.scheme, lifted.certificate, origin, certificate)
        self._keep(found)
        return found

    def _keep(self, found: Find | Unlifted) -> None:
        self._seen.add(found.origin.digest)
        if isinstance(found, Find):
            self._finds.append(found)
        else:
            self._unlifted.append(found)

    def _provenance(self, index: int, walker: Walker, version: str) -> Provenance:
        start: Scheme | None = self.config.start
        return Provenance(
            kind="search",
            command=self.config.call,
            seed=self.config.seed,
            version=version,
            parents=(start.digest,) if start else (),
            relation="flip walk" if start else "flip walk from naive",
            remark=f"walk {index}, round {self._round}, step {walker.steps}",
            date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            seconds=round(self.seconds, 3),
        )

    def save(self) -> None:
        """Write a checkpoint into the folder, if there is one."""
        if self.folder is None:
            return
        start = time.perf_counter()
        self.folder.save(
            Checkpoint(
                self._round, self.seconds, self._gained, self._lowest, self._flips, self.done, snapshot(self._walkers)
            )
        )
        self._saved = time.perf_counter()
        self._pause = max(CHECKPOINT_SECONDS, CHECKPOINT_SHARE * (self._saved - start))

    @property
    def _flips(self) -> int:
        return sum(walker.flips for walker in self._walkers)

    def progress(self) -> Progress:
        """How the run stands."""
        seconds = self.seconds
        return Progress(self._round, self._flips, seconds, self._lowest, seconds - self._gained, len(self._finds))

    def result(self) -> Result:
        """What the run has come to."""
        return Result(
            self._target,
            self._ring,
            self.config.seed,
            tuple(self._finds),
            tuple(self._unlifted),
            dict(Counter(walker.lowest for walker in self._walkers)),
            self._round,
            self._flips,
            self.seconds,
            interrupted=False,
        )


def walker_of(config: RunConfig, index: int) -> Walker:
    """Walk `index` of a run, at its start.

    Raises:
        PlanError: it does not fit the target.
    """
    return make_walker(config.walk, config.terms, config.seed, index, config.patience)


def _key(found: Find | Unlifted) -> str:
    return found.origin.digest

"""Sessions whose walks are distributed over many workers, and their engine: a worker runs a session of another one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import PlanError
from ...schemes_db import Target
from ..flipgraph.walkers import Walks, WalkTerms
from ..runs.distinct import DistinctPool
from ..runs.engine import Engine, engine_of
from ..runs.plan import Setting
from ..runs.snapshot import Arrays
from ..terms.packed import Vector
from .actor import Standing
from .connection import Cluster
from .workers import Worker, WorkerPool, pool_of

SNAPSHOT_SECONDS = 5.0
"""Seconds between snapshots of all workers: the most that a replacement worker must repeat."""

SNAPSHOT_SHARE = 20
"""Minimum ratio of the time between snapshots to the time that the last one took."""


class ClusterSession:
    """Sessions of equal parts of the walks, one a worker; a round ends when the slowest worker has finished it.

    Args:
        device: of each worker, a name that `engine_of` accepts.
        of: all walks; 0 walkers for the default of each worker's device.
        splits: whether checkpoints store each walk separately, so that any number of workers can resume them.
    """

    def __init__(self, pool: WorkerPool, device: str, of: Walks, *, splits: bool) -> None:
        pool.owner = self
        self._pool, self._splits = pool, splits
        used = min(len(pool.workers), of.walkers or len(pool.workers))
        self._workers: list[Worker] = pool.workers[:used]
        shares = [len(part) for part in np.array_split(np.arange(of.walkers), used)]
        begins = np.cumsum([0, *shares]) if of.walkers else np.arange(used)
        for worker, begin, share in zip(self._workers, begins.tolist(), shares, strict=False):
            worker.call("start", device, replace(of, starts=list(of.starts), first=of.first + begin, walkers=share))
        standings: list[Standing] = [worker.reply() for worker in self._workers]
        self._bounds = np.cumsum([0, *(len(standing.ranks) for standing in standings)])
        self.walkers = int(self._bounds[-1])
        self.ranks, self.lowest = np.zeros((2, self.walkers), dtype=np.int64)
        self._flips = [0] * used
        for number, standing in enumerate(standings):
            self._note(number, standing)
        self._saved, self._pause = time.perf_counter(), SNAPSHOT_SECONDS

    @property
    def flips(self) -> int:
        return sum(self._flips)

    def advance(self, goals: Vector, steps: int, executor: Executor | None) -> None:
        """Run one round on every worker; the executor is ignored.

        Raises:
            WorkerLostError: a worker died and can't be replaced.
        """
        everywhere = range(len(self._workers))
        self._changed(everywhere, lambda number: ("advance", goals[self._part(number)], steps, None))
        if steps and time.perf_counter() - self._saved >= self._pause:
            self._snapshots()

    def chosen(self, walks: Vector) -> Vector:
        if self._splits:
            return walks  # on a CPU all walks are selected
        parts = [self._ask(number, "chosen", walks[places]) for number, places in self._shares(walks)]
        return np.concatenate([walks[:0], *(part + self._bounds[number] for number, part in parts)])

    def terms(self, walks: Vector) -> list[WalkTerms]:
        found: list[Any] = [None] * len(walks)
        for number, places in list(self._shares(walks)):
            for place, terms in zip(places.tolist(), self._ask(number, "terms", walks[places])[1], strict=True):
                found[place] = terms
        return found

    def steps(self, walks: Vector) -> Vector:
        steps = np.zeros(len(walks), dtype=np.int64)
        for number, places in self._shares(walks):
            steps[places] = self._ask(number, "steps", walks[places])[1]
        return steps

    def rewind(self, walks: Vector) -> None:
        parts = dict(self._shares(walks))
        self._changed(parts, lambda number: ("rewind", walks[parts[number]] - self._bounds[number]))

    def send(self, walks: Vector, starts: Sequence[WalkTerms], entries: Vector) -> None:
        parts = dict(self._shares(walks))

        def sent(number: int) -> tuple[Any, ...]:
            used, places = np.unique(entries[parts[number]], return_inverse=True)
            return "send", walks[parts[number]] - self._bounds[number], [starts[entry] for entry in used], places

        self._changed(parts, sent)

    def widen(self, pool: DistinctPool, goal: int, count: int, launches: int) -> None:
        """Add to the pool the schemes that the workers' walks from its members find."""
        if not len(pool) or len(pool) >= count:
            return
        self._own()
        for worker in self._workers:
            worker.call("widen", list(pool.schemes), goal, count, launches)
        for worker in self._workers:
            for scheme in worker.reply():
                if len(pool) < count:
                    pool.add(scheme)

    def to_arrays(self) -> Arrays:
        parts = self._snapshots()
        arrays: Arrays = {"sizes": np.diff(self._bounds)}
        for number, part in enumerate(parts):
            arrays |= {f"{number}/{name}": array for name, array in part.items()}
        return arrays

    def take_arrays(self, arrays: Arrays) -> None:
        sizes = arrays["sizes"].tolist()
        parts: list[Arrays] = [
            {name.removeprefix(f"{number}/"): a for name, a in arrays.items() if name.startswith(f"{number}/")}
            for number in range(len(sizes))
        ]
        if sizes != np.diff(self._bounds).tolist():
            if not self._splits or sum(sizes) != self.walkers:
                raise PlanError(
                    f"the checkpoint is of {len(parts)} workers with {sum(sizes)} walks, here are {len(self._workers)} "
                    f"with {self.walkers}: resume it with --workers {len(parts)}"
                )
            whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            numbers = range(len(self._workers))
            parts = [{name: array[self._part(number)] for name, array in whole.items()} for number in numbers]
        for worker, part in zip(self._workers, parts, strict=True):
            worker.remember(part)
        self._changed(range(len(parts)), lambda number: ("take_arrays", parts[number]))

    def _part(self, number: int) -> slice:
        """Return the slice of the walks of a worker."""
        return slice(int(self._bounds[number]), int(self._bounds[number + 1]))

    def _shares(self, walks: Vector) -> Iterator[tuple[int, Vector]]:
        """Yield the workers that own some of the walks, each with the positions of its walks."""
        owners = np.searchsorted(self._bounds, walks, side="right") - 1
        for number in np.unique(owners).tolist():
            yield number, np.flatnonzero(owners == number)

    def _ask(self, number: int, method: str, walks: Vector) -> tuple[int, Any]:
        """Call a method of a worker on some of its walks; return the worker's number and its reply."""
        self._own()
        self._workers[number].call("ask", method, walks - self._bounds[number])
        return number, self._workers[number].reply()

    def _changed(self, numbers: Any, call: Callable[[int], tuple[Any, ...]]) -> None:
        """Make a call on some workers concurrently, and record the state that each returns."""
        self._own()
        numbers = list(numbers)
        for number in numbers:
            self._workers[number].call("change", *call(number))
        for number in numbers:
            self._note(number, self._workers[number].reply())

    def _note(self, number: int, standing: Standing) -> None:
        part = self._part(number)
        self.ranks[part], self.lowest[part], self._flips[number] = standing

    def _snapshots(self) -> list[Arrays]:
        """Return the state of every worker, stored as the state that a replacement starts from."""
        self._own()
        begin = time.perf_counter()
        for worker in self._workers:
            worker.call("ask", "to_arrays")
        parts: list[Arrays] = [worker.reply() for worker in self._workers]
        for worker, part in zip(self._workers, parts, strict=True):
            worker.remember(part)
        self._saved = time.perf_counter()
        self._pause = max(SNAPSHOT_SECONDS, SNAPSHOT_SHARE * (self._saved - begin))
        return parts

    def _own(self) -> None:
        if self._pool.owner is not self:
            raise PlanError("another search of this process has taken these workers over: run one after the other")


def engine_on(device: str, cluster: Cluster | None) -> tuple[Engine, str]:
    """Return the engine of a device of this process (cluster None) or of workers, and the text after the colon.

    Raises:
        PlanError: the device is unknown, or names GPUs where each worker of a cluster has its own.
    """
    return engine_of(device) if cluster is None else (Ray(cluster, device), "")


@dataclass(frozen=True)
class Ray:
    """Engine of workers with a core (`cpu`, `twin`) or a GPU (`cuda`) each. Ray is imported when a session starts.

    With a given number of walks on processors the finds are those of the engine `cpu`, for any number of
    workers and of worker deaths; without one each worker runs that engine's default number.

    Raises:
        PlanError: the device is unknown, or names particular GPUs.
    """

    cluster: Cluster
    device: str = "cpu"

    def __post_init__(self) -> None:
        _, places = engine_of(self.device)
        if places:
            raise PlanError(f"a worker has a GPU for itself: write --device {self.device.partition(':')[0]}")

    @property
    def inner(self) -> Engine:
        """The engine of each worker."""
        return engine_of(self.device)[0]

    @property
    def by_format(self) -> bool:
        return self.inner.by_format

    def setting(self, target: Target, walk: str) -> Setting:
        return replace(self.inner.setting(target, walk), walkers=0)

    def start(self, of: Walks, places: str = "") -> ClusterSession:
        """Start walks on all workers.

        Raises:
            PlanError: see `Engine.start`; or Ray is not installed, no cluster answers, or it is of another version.
        """
        pool = pool_of(self.cluster, gpus=self.device == "cuda")
        if not of.walkers and not self.by_format:
            own = self.inner.setting(of.starts[0].target, of.walk).walkers
            of = replace(of, walkers=own * len(pool.workers))
        return ClusterSession(pool, self.device, of, splits=not self.by_format)

"""Head-side proxies of workers of a Ray cluster: a worker that dies is replaced and restored to the same state."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import LcmaError, PlanError
from ..runs.locked_folder import code_hash
from ..runs.snapshot import Arrays
from ..turn_fleet import Stop
from .actor import WorkerActor
from .connection import Cluster, connection_number

CHANGES = ("start", "change", "widen")
"""The calls that change a session: all since the last snapshot are repeated in a new worker."""

Call = tuple[str, tuple[Any, ...]]
"""A method of a `WorkerActor`, and its arguments."""

DEATHS = 5
"""Number of deaths of a worker in one call after which the call is not repeated."""

PLACE_SECONDS = 120.0
"""Timeout in seconds for the placement of all workers, and of a replacement on a GPU."""

OVERTIME = 120.0
"""Seconds that a turn may exceed its time, for compiling and certifying; then its worker is replaced."""

LOOK = 0.5
"""Seconds between two checks of the stop condition of turns."""


class WorkerLostError(LcmaError):
    """A worker that can't be placed or replaced."""

    exit_code = 3


class Worker:
    """One actor, and the data to recreate it: the start of its session, a snapshot, and the calls since.

    A replacement repeats the calls, and sessions depend on nothing else: so a run continues as if no worker
    had died, and steps that were not reported are repeated.
    """

    def __init__(self, ray: Any, cluster: Cluster, *, gpu: bool) -> None:
        self._ray, self._cluster, self._gpu = ray, cluster, gpu
        self._actor = self._make(again=False)
        self._journal: list[Call] = []
        self._pending: Call = ("code", ())
        self.deaths = 0
        self.reply_to = self._actor.code.remote()

    def call(self, method: str, *args: Any) -> None:
        """Start a call; `reply` waits for its result. "start" begins a session, which replaces an earlier one."""
        self._pending = (method, args)
        if method in CHANGES:
            self._journal = [*(self._journal if method != "start" else ()), self._pending]
        self.reply_to = getattr(self._actor, method).remote(*args)

    def reply(self) -> Any:
        """Return the result of the last call.

        Raises:
            WorkerLostError: the worker died DEATHS times, or there is no GPU for a replacement.
            LcmaError: the error of the call.
        """
        for _ in range(DEATHS):
            try:
                return self._ray.get(self.reply_to)
            except self._ray.exceptions.RayTaskError as error:
                raise (error.cause if isinstance(error.cause, Exception) else error) from None
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.ObjectLostError):
                self.deaths += 1
                self._repeat()
        method, args = self._pending
        name = args[0] if method in ("change", "ask") else method
        raise WorkerLostError(
            f"a worker died {DEATHS} times in one call ({name}): its node may be out of memory; "
            "the run is kept up to its last checkpoint"
        )

    def remember(self, arrays: Arrays) -> None:
        """Store a snapshot as the state that a replacement starts from."""
        self._journal = [self._journal[0], ("change", ("take_arrays", arrays))]

    def turn(self, args: tuple[Any, ...]) -> Any:
        """Start a turn of an improvement; return the stream of its reports."""
        return self._actor.descend.options(num_returns="streaming").remote(*args)

    def kill(self) -> None:
        self._ray.kill(self._actor)

    def replace(self) -> None:
        """Start a new actor, which knows nothing of the old one."""
        self.kill()
        self._actor = self._make(again=True)

    def _make(self, *, again: bool) -> Any:
        place = self._cluster.place(gpus=self._gpu, again=again)
        return self._ray.remote(WorkerActor).options(**place).remote()

    def _repeat(self) -> None:
        """Create an actor in the state of the old one before the failed call, and repeat that call."""
        self._actor = self._make(again=True)
        if self._gpu:
            await_places(self._ray, [self._actor.code.remote()], "no GPU is free for a worker that was lost")
        changed = self._journal and self._journal[-1] is self._pending
        for method, args in [*self._journal, *([] if changed else [self._pending])]:
            self.reply_to = getattr(self._actor, method).remote(*args)


def await_places(ray: Any, codes: Sequence[Any], otherwise: str) -> None:
    """Wait until new actors run, and check that their code equals this process's.

    Raises:
        WorkerLostError: some have not started after `PLACE_SECONDS`.
        PlanError: lcma is missing on a node, or is another version.
    """
    ready, waiting = ray.wait(list(codes), num_returns=len(codes), timeout=PLACE_SECONDS)
    if waiting:
        raise WorkerLostError(f"{otherwise}: {len(ready)} of {len(codes)} started within {PLACE_SECONDS:g} s")
    for code in codes:
        try:
            found = ray.get(code)
        except ray.exceptions.RayError as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            raise PlanError(
                f"a worker could not start ({lines[-1].strip()}): install the same lcma on every node of the cluster"
            ) from None
        if found != code_hash():
            raise PlanError(
                f"a node of the cluster has other code of lcma ({found}, here {code_hash()}): "
                "install the same version on every node"
            )


class WorkerPool:
    """The workers of a cluster for one kind of device, reused by the next session of this process.

    Attributes:
        owner: the session that uses the workers; an earlier session can no longer use them.
    """

    def __init__(self, cluster: Cluster, *, gpus: bool) -> None:
        self._ray = ray = cluster.connect()
        count = cluster.count(ray, gpus=gpus)
        self.owner: object = None
        self.workers = [Worker(ray, cluster, gpu=gpus) for _ in range(count)]
        kind = "GPUs" if gpus else "cores"
        try:
            await_places(ray, [worker.reply_to for worker in self.workers], f"the Ray cluster has too few free {kind}")
        except LcmaError:
            self.close()
            raise

    def close(self) -> None:
        self.owner = None
        for worker in self.workers:
            worker.kill()

    def run_turns(
        self, turns: Sequence[tuple[Any, ...]], seconds: float, on_report: Callable[[int, Any], None], stop: Stop
    ) -> None:
        """Run a turn of an improvement on each worker, given its arguments; pass its reports to `on_report`.

        Returns when all are done, when `stop` returns True, or OVERTIME after `seconds`; in the last two cases the
        workers of unfinished turns are replaced. A worker that dies loses its turn and is replaced.

        Raises:
            LcmaError: the error of a turn.
        """
        ray, deadline = self._ray, time.monotonic() + seconds + OVERTIME
        open_turns = {self.workers[place].turn(args): place for place, args in enumerate(turns)}
        while open_turns:
            if stop() or time.monotonic() > deadline:
                for place in open_turns.values():
                    self.workers[place].replace()
                return
            ready, _ = ray.wait(list(open_turns), num_returns=1, timeout=LOOK)
            for turn in ready:
                try:
                    on_report(open_turns[turn], ray.get(next(turn)))
                except StopIteration:
                    del open_turns[turn]
                except ray.exceptions.RayTaskError as error:
                    raise (error.cause if isinstance(error.cause, Exception) else error) from None
                except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError):
                    worker = self.workers[open_turns.pop(turn)]
                    worker.deaths += 1
                    worker.replace()


_pools: dict[tuple[int, Cluster, bool], WorkerPool] = {}
"""The worker pool of this process by connection, cluster and device; at most one entry."""


def pool_of(cluster: Cluster, *, gpus: bool) -> WorkerPool:
    """Return the workers of a cluster, started at the first use.

    Raises:
        PlanError: the cluster is not found, runs other code, or lacks GPUs.
        WorkerLostError: the cluster lacks free cores or GPUs.
    """
    cluster.connect()
    key = (connection_number(), cluster, gpus)
    if key not in _pools:
        release()
        _pools[key] = WorkerPool(cluster, gpus=gpus)
    return _pools[key]


def release() -> None:
    """Kill the workers of searches, to free their cores and GPUs."""
    for (connection, _, _), pool in _pools.items():
        if connection == connection_number():
            pool.close()
    _pools.clear()

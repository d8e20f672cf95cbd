"""Workers of a Ray cluster as the head sees them: each is made again where it dies, and comes to the same state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import LcmaError, PlanError
from ..runs.code import code_hash
from ..runs.snapshot import Arrays
from .connection import Cluster, connection_number
from .session_worker import SessionWorker

CHANGES = ("start", "advance", "rewind", "send", "take_arrays", "widen")
"""The calls that change a session: all since the last snapshot are repeated in a new worker."""

Call = tuple[str, tuple[Any, ...]]
"""A method of a `SessionWorker`, and its arguments."""

DEATHS = 5
"""How often a worker may die in one call: what kills it so often will again."""

PLACE_SECONDS = 120.0
"""How long the cluster has to find places for all workers, and a GPU for one that was lost."""


class WorkerLostError(LcmaError):
    """A worker that can't be made again."""

    exit_code = 3


class Worker:
    """One actor, and what it takes to make it again: the start of its session, a snapshot, and the calls since.

    A new actor repeats the calls, and sessions depend on nothing else: so a run goes on as if no worker
    had died, and what one had walked without report is walked again.
    """

    def __init__(self, ray: Any, cluster: Cluster, *, gpu: bool) -> None:
        self._ray, self._cluster, self._gpu = ray, cluster, gpu
        self._actor = self._make(again=False)
        self._journal: list[Call] = []
        self._pending: Call = ("code", ())
        self.deaths = 0
        self.reply_to = self._actor.code.remote()

    def begin(self, *start: Any) -> None:
        """Make a session, in place of one before; see `SessionWorker.start`."""
        self._journal = []
        self.call("start", *start)

    def call(self, method: str, *args: Any) -> None:
        """Begin a call; `reply` waits for it."""
        self._pending = (method, args)
        if method in CHANGES:
            self._journal.append(self._pending)
        self.reply_to = getattr(self._actor, method).remote(*args)

    def reply(self) -> Any:
        """What the last call returned.

        Raises:
            WorkerLostError: the worker died again and again, or there is no GPU for another.
            LcmaError: what the call raised.
        """
        for _ in range(DEATHS):
            try:
                return self._ray.get(self.reply_to)
            except self._ray.exceptions.RayTaskError as error:
                raise (error.cause if isinstance(error.cause, Exception) else error) from None
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.ObjectLostError):
                self.deaths += 1
                self._repeat()
        raise WorkerLostError(
            f"a worker died {DEATHS} times in one call ({self._pending[0]}): its node may be out of memory; "
            "the run is kept up to its last checkpoint"
        )

    def remember(self, arrays: Arrays) -> None:
        """Take the state of now as the one that a new worker starts from."""
        self._journal = [self._journal[0], ("take_arrays", (arrays,))]

    def kill(self) -> None:
        self._ray.kill(self._actor)

    @property
    def process(self) -> int:
        """The number of the actor's process on its node."""
        return int(self._ray.get(self._actor.process.remote()))

    def _make(self, *, again: bool) -> Any:
        place = self._cluster.place(gpus=self._gpu, again=again)
        return self._ray.remote(SessionWorker).options(**place).remote()

    def _repeat(self) -> None:
        """A new actor in the state of the old one before the call that broke, and that call again."""
        self._actor = self._make(again=True)
        if self._gpu:
            await_places(self._ray, [self._actor.code.remote()], "no GPU is free for a worker that was lost")
        changed = self._journal and self._journal[-1] is self._pending
        for method, args in [*self._journal, *([] if changed else [self._pending])]:
            self.reply_to = getattr(self._actor, method).remote(*args)


def replies(workers: Iterable[Worker]) -> list[Any]:
    """What the last call of each returned."""
    return [worker.reply() for worker in workers]


def await_places(ray: Any, codes: Sequence[Any], otherwise: str) -> None:
    """Wait until new actors run, and check that their code is this process's.

    Raises:
        WorkerLostError: some have no place after `PLACE_SECONDS`.
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
    """The workers of a cluster for one kind of device, kept for the next session of this process.

    Attributes:
        owner: the session that has them; one before has lost them.
    """

    def __init__(self, cluster: Cluster, *, gpus: bool) -> None:
        ray = cluster.connect()
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
        """End the workers."""
        self.owner = None
        for worker in self.workers:
            worker.kill()


_pools: dict[tuple[int, Cluster, bool], WorkerPool] = {}
"""The workers that this process has, by connection, cluster and device: none, or one pool."""


def pool_of(cluster: Cluster, *, gpus: bool) -> WorkerPool:
    """The workers of a cluster, started with the first use.

    Raises:
        PlanError: there is no such cluster, or none of this code, or it lacks GPUs or places.
    """
    cluster.connect()
    key = (connection_number(), cluster, gpus)
    if key not in _pools:
        release()
        _pools[key] = WorkerPool(cluster, gpus=gpus)
    return _pools[key]


def release() -> None:
    """End the workers of searches, so that others have their places."""
    for (connection, _, _), pool in _pools.items():
        if connection == connection_number():
            pool.close()
    _pools.clear()

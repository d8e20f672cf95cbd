"""Pool of workers that run turns of an improvement concurrently and stream their finds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import LcmaError
from .connection import Cluster
from .turn_worker import Report, TurnWorker
from .workers import await_places, release

OVERTIME = 120.0
"""Seconds that a turn may exceed its time, for compiling and certifying; then its worker is replaced."""

LOOK = 0.5
"""Seconds between two checks of the stop condition."""


class TurnPool:
    """The workers of a cluster for turns; one that dies loses its turn and is replaced.

    Raises:
        PlanError: the cluster is not found, runs other code, or lacks GPUs.
        WorkerLostError: the cluster lacks free cores or GPUs.
    """

    def __init__(self, cluster: Cluster, *, gpus: bool) -> None:
        self._ray, self._cluster, self._gpus = cluster.connect(), cluster, gpus
        release()
        count = cluster.count(self._ray, gpus=gpus)
        self._actors: list[Any] = [self._make(again=False) for _ in range(count)]
        self.deaths = 0
        try:
            codes = [actor.code.remote() for actor in self._actors]
            await_places(self._ray, codes, f"the Ray cluster has too few free {'GPUs' if gpus else 'cores'}")
        except LcmaError:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._actors)

    def close(self) -> None:
        """Kill the workers; unreported finds are lost."""
        for actor in self._actors:
            self._ray.kill(actor)

    @property
    def processes(self) -> list[int]:
        """Process id of each worker on its node."""
        return list(self._ray.get([actor.process.remote() for actor in self._actors]))

    def run(
        self,
        tasks: Sequence[tuple[str, tuple[Any, ...]]],
        seconds: float,
        on_report: Callable[[int, Report], None],
        stop: Callable[[], bool],
    ) -> None:
        """Run one task on each worker, a method of `TurnWorker` with its arguments; pass reports to `on_report`.

        Returns when all tasks are done, when `stop` returns True, or OVERTIME after `seconds`; in the last two
        cases the workers of unfinished tasks are replaced.

        Raises:
            LcmaError: the error of a turn.
        """
        ray, deadline = self._ray, time.monotonic() + seconds + OVERTIME
        open_turns = {
            getattr(self._actors[place], method).options(num_returns="streaming").remote(*args): place
            for place, (method, args) in enumerate(tasks)
        }
        while open_turns:
            if stop() or time.monotonic() > deadline:
                for place in open_turns.values():
                    self._replace(place)
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
                    self.deaths += 1
                    self._replace(open_turns.pop(turn))

    def _replace(self, place: int) -> None:
        self._ray.kill(self._actors[place])
        self._actors[place] = self._make(again=True)

    def _make(self, *, again: bool) -> Any:
        place = self._cluster.place(gpus=self._gpus, again=again)
        return self._ray.remote(TurnWorker).options(**place).remote()

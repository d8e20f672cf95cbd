"""Sessions: all walks of a run on one device, as vectors; and the engines that start them.

A run talks to a session only, between rounds: so one walk a thread, or a hundred thousand on a GPU,
are searched with by the same code, kept in the same folders and resumed alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db import Target
from ..flipgraph.policy import Policy
from ..flipgraph.walkers import Terms, Walker, make_walker
from .plan import Setting
from .settings import setting_for
from .snapshot import Arrays, restore, snapshot

if TYPE_CHECKING:
    from ..cluster.connection import Cluster

Vector = npt.NDArray[np.int64]
"""(walkers,) numbers, or the places of some walkers."""


class Session(Protocol):
    """The walks 0 to `walkers - 1` of one format, advanced together.

    What they find depends on what they were made from, on the goals and steps of every round and on
    what they are sent to, never on timing or on the number of threads.
    """

    walkers: int

    @property
    def ranks(self) -> Vector:
        """(walkers,): the lowest rank of each since its start, or since it was sent or rewound."""

    @property
    def lowest(self) -> Vector:
        """(walkers,): the lowest rank of all of each."""

    @property
    def flips(self) -> int:
        """Flips of all walks together."""

    def advance(self, goals: Vector, steps: int, executor: Executor | None) -> None:
        """One round: every walk goes so many steps, or to its goal; an executor is for the use of CPU walks."""

    def chosen(self, walks: Vector) -> Vector:
        """Those of some walks whose terms are worth taking in this round, in the order to take them in."""

    def terms(self, walks: Vector) -> list[Terms]:
        """The terms of some walks at their ranks in `ranks`."""

    def steps(self, walks: Vector) -> Vector:
        """Steps that some walks have gone."""

    def rewind(self, walks: Vector) -> None:
        """Bring some walks back to their start; they forget their ranks in `ranks`, their random draws go on."""

    def send(self, walks: Vector, starts: Sequence[Terms], entries: Vector) -> None:
        """Bring walk `walks[i]` to `starts[entries[i]]`, which is its start from now on."""

    def to_arrays(self) -> Arrays:
        """All that changes, for a checkpoint."""

    def take_arrays(self, arrays: Arrays) -> None:
        """Put back what `to_arrays` gave, into a session that was made alike."""


class Engine(Protocol):
    """A kind of device that walks."""

    @property
    def by_format(self) -> bool:
        """Whether each format of a run has settings of its own, or all those of its target."""

    def setting(self, target: Target, walk: str) -> Setting:
        """What suits a format and a walk.

        Raises:
            PlanError: the walk is not known here.
        """

    def start(
        self, walk: str, starts: Sequence[Terms], policy: Policy, *, seed: int, first: int, walkers: int, places: str
    ) -> Session:
        """Walks `first` to `first + walkers - 1` of a seed.

        Args:
            starts: where walks may be sent; all start from these in turn, or from the one of the highest rank.
            walkers: 0 for as many as the device holds.
            places: what stands behind the colon of a device: the GPUs to take.

        Raises:
            PlanError: the walk or its policy does not fit the device or the target, or the device is not here.
        """


class ThreadSession:
    """One walker a walk, in threads."""

    def __init__(self, walkers: Sequence[Walker]) -> None:
        self._walkers = list(walkers)
        self.walkers = len(self._walkers)

    @property
    def ranks(self) -> Vector:
        return np.array([walker.rank for walker in self._walkers], dtype=np.int64)

    @property
    def lowest(self) -> Vector:
        return np.array([walker.lowest for walker in self._walkers], dtype=np.int64)

    @property
    def flips(self) -> int:
        return sum(walker.flips for walker in self._walkers)

    def advance(self, goals: Vector, steps: int, executor: Executor | None) -> None:
        tasks = list(zip(self._walkers, goals.tolist(), strict=True))
        if executor is None or len(tasks) == 1:
            for walker, goal in tasks:
                walker.advance(goal, steps)
            return
        for task in [executor.submit(walker.advance, goal, steps) for walker, goal in tasks]:
            task.result()

    def chosen(self, walks: Vector) -> Vector:
        return walks

    def terms(self, walks: Vector) -> list[Terms]:
        return [self._walkers[walk].terms() for walk in walks.tolist()]

    def steps(self, walks: Vector) -> Vector:
        return np.array([self._walkers[walk].steps for walk in walks.tolist()], dtype=np.int64)

    def rewind(self, walks: Vector) -> None:
        for walk in walks.tolist():
            self._walkers[walk].rewind()

    def send(self, walks: Vector, starts: Sequence[Terms], entries: Vector) -> None:
        for walk, entry in zip(walks.tolist(), entries.tolist(), strict=True):
            walker = self._walkers[walk]
            if not hasattr(walker, "start_from"):
                raise PlanError(f"walks of kind {type(walker).__name__} can't be sent from pools: search without them")
            walker.start_from(starts[entry])

    def to_arrays(self) -> Arrays:
        return snapshot(self._walkers)

    def take_arrays(self, arrays: Arrays) -> None:
        restore(self._walkers, arrays)


class Threads:
    """The engine of a processor: compiled walks that release the interpreter's lock."""

    by_format = False

    def setting(self, target: Target, walk: str) -> Setting:
        return setting_for(target, walk)

    def start(
        self, walk: str, starts: Sequence[Terms], policy: Policy, *, seed: int, first: int, walkers: int, places: str
    ) -> ThreadSession:
        if places:
            raise PlanError(f"device cpu:{places} is not known: write cpu, and the number of threads as jobs")
        longest = max(starts, key=lambda terms: terms.rank)  # the others fit where it does
        return ThreadSession([make_walker(walk, longest, seed, first + i, policy) for i in range(walkers)])


class Cuda:
    """The engine of NVIDIA GPUs, or their twin on the processor; numba-cuda is asked for only when it starts."""

    by_format = True

    def __init__(self, *, twin: bool = False) -> None:
        self._twin = twin

    def setting(self, target: Target, walk: str) -> Setting:
        from ..flipgraph.gpu.session import run_setting

        return run_setting(target, walk)

    def start(
        self, walk: str, starts: Sequence[Terms], policy: Policy, *, seed: int, first: int, walkers: int, places: str
    ) -> Session:
        from ..flipgraph.gpu.session import CudaSession

        if self._twin and places:
            raise PlanError(f"device twin:{places} is not known: write twin, and a number of walks")
        device = "cpu" if self._twin else f"cuda:{places}" if places else "cuda"
        return CudaSession(walk, starts, policy, seed=seed + (first << 32), walkers=walkers, device=device)


_ENGINES: dict[str, Engine] = {"cpu": Threads(), "cuda": Cuda(), "twin": Cuda(twin=True)}


def register_engine(device: str, engine: Engine) -> None:
    """Enter a device that walks.

    Raises:
        PlanError: the name is taken.
    """
    if device in _ENGINES:
        raise PlanError(f"a device named {device!r} is registered already")
    _ENGINES[device] = engine


def device_names() -> tuple[str, ...]:
    """The devices that `engine_of` knows."""
    return tuple(sorted(_ENGINES))


def engine_of(device: str, cluster: Cluster | None = None) -> tuple[Engine, str]:
    """The engine of a device such as cpu, cuda or cuda:0,1, and what stands behind the colon; or that of a cluster.

    Raises:
        PlanError: no such device, or some GPUs of it where each worker of a cluster has its own.
    """
    if cluster is not None:
        from ..cluster.engine import Ray

        return Ray(cluster, device), ""
    name, _, places = device.partition(":")
    if name not in _ENGINES:
        raise PlanError(f"device {device!r} is not known; choose one of {', '.join(device_names())}")
    return _ENGINES[name], places

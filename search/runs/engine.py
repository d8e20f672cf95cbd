"""Sessions: all walks of a run on one device, as vectors; and the engines that start them.

A run accesses its walks only through a session, between rounds: so the same code, folders and checkpoints
serve one walk a thread and a hundred thousand walks on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Protocol

import numpy as np

from ...errors import PlanError, unknown_name
from ...schemes_db import Target
from ..flipgraph.walkers import Walker, Walks, WalkTerms, make_walker
from ..terms.packed import Vector
from .distinct import DistinctPool
from .plan import Setting, gpu_setting_for, setting_for
from .snapshot import Arrays, restore, snapshot


class Session(Protocol):
    """The walks 0 to `walkers - 1` of one format, advanced together.

    Their finds depend on the arguments of the session, on the goals and steps of every round and on the
    starts that they are sent to, never on timing or on the number of threads.
    """

    walkers: int

    @property
    def ranks(self) -> Vector:
        """(walkers,): lowest rank of each since its start, or since it was sent or rewound."""

    @property
    def lowest(self) -> Vector:
        """(walkers,): lowest rank ever of each."""

    @property
    def flips(self) -> int:
        """Total flips of all walks."""

    def advance(self, goals: Vector, steps: int, executor: Executor | None) -> None:
        """Run one round: every walk takes `steps` steps, or stops at its goal; CPU walks use the executor."""

    def chosen(self, walks: Vector) -> Vector:
        """Select those of some walks whose terms are to be collected in this round, in the order of collection."""
        return walks

    def terms(self, walks: Vector) -> list[WalkTerms]:
        """Return the terms of some walks at their ranks in `ranks`."""

    def steps(self, walks: Vector) -> Vector:
        """Return the numbers of steps of some walks."""

    def rewind(self, walks: Vector) -> None:
        """Reset some walks to their start and their `ranks` to those of the start; their random states continue."""

    def widen(self, pool: DistinctPool, goal: int, count: int, launches: int) -> None:
        """Add schemes to a pool that walks from its members reach at the same rank, through higher ranks, if it can."""
        return

    def to_arrays(self) -> Arrays:
        """Return all mutable state, for a checkpoint."""

    def take_arrays(self, arrays: Arrays) -> None:
        """Restore the state of `to_arrays`, in a session created with the same arguments."""


class SteeredSession(Session, Protocol):
    """A session whose walks can be sent to starts."""

    def send(self, walks: Vector, starts: Sequence[WalkTerms], entries: Vector) -> None:
        """Set walk `walks[i]` to `starts[entries[i]]`, its new start."""


class Engine(Protocol):
    """A kind of device that runs walks."""

    @property
    def by_format(self) -> bool:
        """True if each format of a run has its own settings; else those of the target, and steered sessions."""

    def setting(self, target: Target, walk: str) -> Setting:
        """Return the default settings for a format and a walk.

        Raises:
            PlanError: the engine does not know the walk.
        """

    def start(self, of: Walks, places: str = "") -> Session:
        """Start walks on the device; `places` is the part of its name after the colon: the GPUs to use.

        Raises:
            PlanError: the walk or its policy does not fit the device or the target, or the device is missing.
        """


class ThreadSession(SteeredSession):
    """Session of CPU walks, one `Walker` each, run on threads."""

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
        mapped = map if executor is None or self.walkers == 1 else executor.map
        list(mapped(lambda walker, goal: walker.advance(goal, steps), self._walkers, goals.tolist()))

    def terms(self, walks: Vector) -> list[WalkTerms]:
        return [self._walkers[walk].terms() for walk in walks.tolist()]

    def steps(self, walks: Vector) -> Vector:
        return np.array([self._walkers[walk].steps for walk in walks.tolist()], dtype=np.int64)

    def rewind(self, walks: Vector) -> None:
        for walk in walks.tolist():
            self._walkers[walk].rewind()

    def send(self, walks: Vector, starts: Sequence[WalkTerms], entries: Vector) -> None:
        for walk, entry in zip(walks.tolist(), entries.tolist(), strict=True):
            walker = self._walkers[walk]
            if not hasattr(walker, "start_from"):
                raise PlanError(
                    f"walks of kind {type(walker).__name__} can't be sent to other starts: search without a ladder"
                )
            walker.start_from(starts[entry])

    def to_arrays(self) -> Arrays:
        return snapshot(self._walkers)

    def take_arrays(self, arrays: Arrays) -> None:
        restore(self._walkers, arrays)


class Threads:
    """The engine of a processor: compiled walks that release the GIL."""

    by_format = False
    setting = staticmethod(setting_for)

    def start(self, of: Walks, places: str = "") -> ThreadSession:
        if places:
            raise PlanError(f"device cpu:{places} is not known: write cpu, and the number of threads as jobs")
        longest = max(of.starts, key=lambda terms: terms.rank)  # the others fit where it does
        numbers = range(of.first, of.first + of.walkers)
        return ThreadSession([make_walker(of.walk, longest, of.seed, number, of.policy) for number in numbers])


class Cuda:
    """The engine of NVIDIA GPUs, or of their twin on the processor; numba-cuda is imported only when it starts."""

    by_format = True
    setting = staticmethod(gpu_setting_for)

    def __init__(self, *, twin: bool = False) -> None:
        self._twin = twin

    def start(self, of: Walks, places: str = "") -> Session:
        from ..flipgraph.gpu.session import CudaSession

        if self._twin and places:
            raise PlanError(f"device twin:{places} is not known: write twin, and a number of walks")
        device = "cpu" if self._twin else f"cuda:{places}" if places else "cuda"
        return CudaSession(of, device)


_ENGINES: dict[str, Engine] = {"cpu": Threads(), "cuda": Cuda(), "twin": Cuda(twin=True)}


def register_engine(device: str, engine: Engine) -> None:
    """Register an engine under a device name.

    Raises:
        PlanError: the name is registered already.
    """
    if device in _ENGINES:
        raise PlanError(f"a device named {device!r} is registered already")
    _ENGINES[device] = engine


def device_names() -> tuple[str, ...]:
    """Return the names of the devices that `engine_of` accepts."""
    return tuple(sorted(_ENGINES))


def engine_of(device: str) -> tuple[Engine, str]:
    """Return the engine of a device such as cpu, cuda or cuda:0,1, and the text after the colon.

    Raises:
        PlanError: the device is unknown.
    """
    name, _, places = device.partition(":")
    if name not in _ENGINES:
        raise unknown_name("device", device, device_names())
    return _ENGINES[name], places

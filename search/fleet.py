"""All walks of a run as one: what a run needs of a device that walks.

A run talks to a fleet only, between rounds: so one walk a thread, or a hundred thousand on a GPU,
are searched with by the same code, kept in the same folders and resumed alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Protocol

from ..errors import PlanError
from .policy import Policy
from .snapshot import Arrays, restore, snapshot
from .walker import Terms, Walker, make_walker


class Fleet(Protocol):
    """The walks 0 to `len(fleet) - 1`, carried on together.

    What they find depends on what they were made from, on the goals and steps of every round and on
    what they are sent to, never on timing or on the number of threads.
    """

    def __len__(self) -> int: ...

    @property
    def ranks(self) -> Sequence[int]:
        """For every walk the lowest rank since its start, or since it was sent or rewound."""

    @property
    def lowest(self) -> Sequence[int]:
        """For every walk its lowest rank of all."""

    @property
    def flips(self) -> int:
        """Flips of all walks together."""

    def advance(self, goals: Sequence[int], steps: int, executor: Executor | None) -> None:
        """One round: every walk goes so many steps, or to its goal; an executor is for the use of CPU walks."""

    def terms(self, walk: int) -> Terms:
        """The terms of a walk at its rank in `ranks`."""

    def steps(self, walk: int) -> int:
        """Steps that a walk has gone."""

    def rewind(self, walk: int) -> None:
        """Bring a walk back to its start; it forgets its rank in `ranks`, its random draws go on."""

    def send(self, walk: int, terms: Terms) -> None:
        """Bring a walk to other terms, which are its start from now on."""

    def to_arrays(self) -> Arrays:
        """All that changes, for a checkpoint."""

    def take_arrays(self, arrays: Arrays) -> None:
        """Put back what `to_arrays` gave, into a fleet that was made alike."""


class WalkerFleet:
    """One walker a walk, in threads."""

    def __init__(self, walkers: Sequence[Walker]) -> None:
        self._walkers = list(walkers)

    def __len__(self) -> int:
        return len(self._walkers)

    @property
    def ranks(self) -> list[int]:
        return [walker.rank for walker in self._walkers]

    @property
    def lowest(self) -> list[int]:
        return [walker.lowest for walker in self._walkers]

    @property
    def flips(self) -> int:
        return sum(walker.flips for walker in self._walkers)

    def advance(self, goals: Sequence[int], steps: int, executor: Executor | None) -> None:
        if executor is None or len(self._walkers) == 1:
            for walker, goal in zip(self._walkers, goals, strict=True):
                walker.advance(goal, steps)
            return
        tasks = [
            executor.submit(walker.advance, goal, steps) for walker, goal in zip(self._walkers, goals, strict=True)
        ]
        for task in tasks:
            task.result()

    def terms(self, walk: int) -> Terms:
        return self._walkers[walk].terms()

    def steps(self, walk: int) -> int:
        return self._walkers[walk].steps

    def rewind(self, walk: int) -> None:
        self._walkers[walk].rewind()

    def send(self, walk: int, terms: Terms) -> None:
        walker = self._walkers[walk]
        if not hasattr(walker, "start_from"):
            raise PlanError(f"walks of kind {type(walker).__name__} can't be sent from pools: search without them")
        walker.start_from(terms)

    def to_arrays(self) -> Arrays:
        return snapshot(self._walkers)

    def take_arrays(self, arrays: Arrays) -> None:
        restore(self._walkers, arrays)


MakeFleet = Callable[[str, Sequence[Terms], int, int, int, Policy], Fleet]
"""From a walk's name, its starts, the seed, the first walk's index, the number of walks, and the policy."""


def cpu_fleet(walk: str, starts: Sequence[Terms], seed: int, first: int, walks: int, policy: Policy) -> WalkerFleet:
    """Walkers `first` to `first + walks - 1` of a seed, which take the starts in turn.

    Raises:
        PlanError: the walk does not fit the target.
    """
    return WalkerFleet([make_walker(walk, starts[i % len(starts)], seed, first + i, policy) for i in range(walks)])


def _cuda_fleet(walk: str, starts: Sequence[Terms], seed: int, first: int, walks: int, policy: Policy) -> Fleet:
    """All walks on an NVIDIA GPU; numba-cuda is asked for only here."""
    from .gpu.runs import gpu_fleet

    return gpu_fleet(walk, starts, seed, first, walks, policy)


_FLEETS: dict[str, MakeFleet] = {"cpu": cpu_fleet, "cuda": _cuda_fleet}


def register_fleet(device: str, make: MakeFleet) -> None:
    """Enter a device that walks.

    Raises:
        PlanError: the name is taken.
    """
    if device in _FLEETS:
        raise PlanError(f"a device named {device!r} is registered already")
    _FLEETS[device] = make


def device_names() -> tuple[str, ...]:
    """The devices that `make_fleet` knows."""
    return tuple(sorted(_FLEETS))


def make_fleet(
    device: str, walk: str, starts: Sequence[Terms], seed: int, first: int, walks: int, policy: Policy
) -> Fleet:
    """The walks of a run on a device.

    Raises:
        PlanError: no such device, or the walk does not fit it or the target.
    """
    if device not in _FLEETS:
        raise PlanError(f"device {device!r} is not known; choose one of {', '.join(device_names())}")
    return _FLEETS[device](walk, starts, seed, first, walks, policy)

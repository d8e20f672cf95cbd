"""Serialisation of the state of a search to plain arrays, by the schema that its class declares.

A class lists all mutable state in `STATE`: attributes that are numbers, and arrays; that of a walker also those in a
NamedTuple ("_arena.best").
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...errors import PlanError

Arrays = dict[str, npt.NDArray[Any]]


class Checkpointed:
    """What has the state of its schema; subclasses add what is no attribute."""

    STATE: ClassVar[tuple[str, ...]]

    def to_arrays(self) -> Arrays:
        """Return all mutable state, for a checkpoint."""
        return {name: np.array(getattr(self, name)) for name in self.STATE}

    def take_arrays(self, arrays: Arrays) -> None:
        """Restore the state of `to_arrays`, in an object that was created with the same arguments.

        Raises:
            PlanError: the state is of another one.
        """
        for name in self.STATE:
            value, state = getattr(self, name), arrays[name]
            if state.ndim != np.ndim(value):
                raise PlanError(f"the checkpoint is of another search: {name} differs")
            setattr(self, name, state.astype(value.dtype) if isinstance(value, np.ndarray) else type(value)(state))


def snapshot(walkers: Sequence[object]) -> Arrays:
    """Return the state of walkers of one class: for every name of the schema an array, walkers along the first axis.

    Raises:
        PlanError: their class declares no schema.
    """
    return {name: np.stack([*map(attrgetter(name), walkers)]) for name in _schema(walkers[0])}


def restore(walkers: Sequence[object], arrays: Arrays) -> None:
    """Restore a snapshot in walkers created with the same arguments as its own.

    Raises:
        PlanError: the snapshot is of walkers of another class or number, or the class declares no schema.
    """
    schema = _schema(walkers[0])
    if set(arrays) != set(schema):
        raise PlanError(f"the checkpoint does not fit these walks: it has {', '.join(sorted(arrays)) or 'nothing'}")
    for name in schema:
        saved, values = arrays[name], [*map(attrgetter(name), walkers)]
        if saved.shape != (len(walkers), *np.shape(values[0])):
            raise PlanError(f"the checkpoint does not fit these walks: {name} differs")
        for walker, value, state in zip(walkers, values, saved, strict=True):
            if isinstance(value, np.ndarray):
                value[...] = state
            else:
                setattr(walker, name, type(value)(state))


def _schema(walker: object) -> tuple[str, ...]:
    schema: tuple[str, ...] | None = getattr(type(walker), "STATE", None)
    if not schema:
        raise PlanError(f"walks of kind {type(walker).__name__} can't be checkpointed: they declare no STATE")
    return schema

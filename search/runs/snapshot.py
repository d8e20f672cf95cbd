"""Serialisation of the state of walkers to plain arrays, by the schema that their class declares.

A walker's class lists all mutable state in `STATE`: attributes that are numbers, and arrays, also those in a
NamedTuple ("_arena.best").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError

Arrays = dict[str, npt.NDArray[Any]]


def snapshot(walkers: Sequence[object]) -> Arrays:
    """Return the state of walkers of one class: for every name of the schema an array, walkers along the first axis.

    Raises:
        PlanError: their class declares no schema.
    """
    return {name: np.stack([np.asarray(_value(walker, name)) for walker in walkers]) for name in _schema(walkers[0])}


def restore(walkers: Sequence[object], arrays: Arrays) -> None:
    """Restore a snapshot in walkers created with the same arguments as its own.

    Raises:
        PlanError: the snapshot is of walkers of another class or number, or the class declares no schema.
    """
    schema = _schema(walkers[0])
    if set(arrays) != set(schema):
        raise PlanError(f"the checkpoint does not fit these walks: it has {', '.join(sorted(arrays)) or 'nothing'}")
    for name in schema:
        saved, values = arrays[name], [_value(walker, name) for walker in walkers]
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


def _value(walker: object, name: str) -> Any:
    value: Any = walker
    for part in name.split("."):
        value = getattr(value, part)
    return value

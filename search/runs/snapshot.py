"""The state of walkers as plain arrays, to be saved and put back, by the schema that their class declares.

A walker's class names all that changes in `STATE`: numbers among its attributes, and arrays there or in a
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
    """The state of walkers of one kind: for every name of the schema its values, the walkers along the first axis.

    Raises:
        PlanError: their class declares no schema.
    """
    return {name: np.stack([np.asarray(_value(walker, name)) for walker in walkers]) for name in _schema(walkers[0])}


def restore(walkers: Sequence[object], arrays: Arrays) -> None:
    """Put a snapshot back into walkers that were made as those it was taken of.

    Raises:
        PlanError: the snapshot is of walkers of another kind or number.
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

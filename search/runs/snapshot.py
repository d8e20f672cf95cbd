"""The state of walkers as plain arrays, to be saved and put back.

A walker keeps all that changes in numpy arrays (in a NamedTuple, if it likes) and in numbers among
its attributes, so that one function can save any kind. Whatever else it keeps must never change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError

Arrays = dict[str, npt.NDArray[Any]]


def snapshot(walkers: Sequence[object]) -> Arrays:
    """The state of walkers of one kind: for every part its values, the walkers along the first axis.

    Raises:
        PlanError: a walker keeps something that is neither an array, a number nor known never to change.
    """
    parts: dict[str, list[npt.NDArray[Any]]] = {}
    for walker in walkers:
        for path, value in _parts(walker):
            parts.setdefault(path, []).append(np.asarray(value))
    return {path: np.stack(values) for path, values in parts.items()}


def restore(walkers: Sequence[object], arrays: Arrays) -> None:
    """Put a snapshot back into walkers that were made as those it was taken of.

    Raises:
        PlanError: the snapshot is of walkers of another kind or number.
    """
    for index, walker in enumerate(walkers):
        for path, value in list(_parts(walker)):
            saved = arrays.get(path)
            if saved is None or saved.shape != (len(walkers), *np.shape(value)):
                raise PlanError(f"the checkpoint does not fit these walks: {path} differs")
            if isinstance(value, np.ndarray):
                value[...] = saved[index]
            else:
                setattr(walker, path, type(value)(saved[index]))


def _parts(walker: object) -> Iterator[tuple[str, npt.NDArray[Any] | float]]:
    for name, value in vars(walker).items():
        if isinstance(value, np.ndarray | int | float):
            yield name, value
        elif isinstance(value, str) or value is None or _frozen(value):
            continue
        elif isinstance(value, tuple) and hasattr(value, "_asdict"):
            for field, part in value._asdict().items():
                if isinstance(part, np.ndarray):
                    yield f"{name}.{field}", part
        else:
            raise PlanError(
                f"walks of kind {type(walker).__name__} can't be checkpointed: {name} is a {type(value).__name__}"
            )


def _frozen(value: object) -> bool:
    """Whether it is of a frozen dataclass: terms, a target."""
    parameters = getattr(type(value), "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)

"""Memoize results on the object they were computed from, keyed by identity (hashing the object is slow)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Held = TypeVar("Held")


class IdentityKey:
    """A key that is equal only to keys of the same object."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


def memoize_on_instance(function: Callable[Concatenate[Held, P], T]) -> Callable[Concatenate[Held, P], T]:
    """Memoize a pure function on its first argument, a frozen object: results are stored as long as the object exists.

    Hashing a program over all its ops takes longer than the computation.
    """
    name = f"_kept_{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def found(held: Held, *args: P.args, **kwargs: P.kwargs) -> T:
        kept: dict[Any, T] = vars(held).setdefault(name, {})
        key = (args, tuple(kwargs.items()))
        if key not in kept:
            kept[key] = function(held, *args, **kwargs)
        return kept[key]

    return found

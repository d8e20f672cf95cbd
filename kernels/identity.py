"""Memoize results on the object they were computed from, keyed by identity (hashing the object is slow)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Held = TypeVar("Held")


class Same:
    """An object as a key: equal to itself only."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


def kept_with_it(function: Callable[Concatenate[Held, P], T]) -> Callable[Concatenate[Held, P], T]:
    """Keep what a pure function gives in its first argument, a frozen object: it lives as long as that.

    A program is hashed over all its ops, which takes longer than the computation.
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

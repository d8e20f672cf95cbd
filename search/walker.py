"""Walkers by name: what a run needs of a walk, and the table where new kinds are entered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..errors import PlanError
from .packed import PackedTerms
from .policy import Policy


class Walker(Protocol):
    """A walk that can be carried on; its course depends on its seed, index and steps only."""

    @property
    def rank(self) -> int:
        """The lowest rank since the start or the last `rewind`."""

    @property
    def lowest(self) -> int:
        """The lowest rank of all."""

    @property
    def flips(self) -> int: ...

    @property
    def steps(self) -> int: ...

    def advance(self, goal: int, steps: int) -> None:
        """Walk for so many steps, or until the rank is at most `goal`. Releases the GIL."""

    def terms(self) -> PackedTerms:
        """The terms at `rank`."""

    def rewind(self) -> None:
        """Go back to the start and forget `rank`; the random draws go on."""


MakeWalker = Callable[[PackedTerms, int, int, Policy], Walker]

_WALKS: dict[str, MakeWalker] = {}


def register_walk(name: str, make: MakeWalker) -> None:
    """Enter a kind of walk: `make(start, seed, index, policy)` gives walk `index` of a run.

    Raises:
        PlanError: the name is taken.
    """
    if name in _WALKS:
        raise PlanError(f"a walk named {name!r} is registered already")
    _WALKS[name] = make


def walk_names() -> tuple[str, ...]:
    """The names that `make_walker` knows."""
    return tuple(sorted(_WALKS))


def make_walker(name: str, start: PackedTerms, seed: int, index: int, policy: Policy) -> Walker:
    """Walk `index` of a run.

    Raises:
        PlanError: no such walk, or the start does not fit it.
    """
    if name not in _WALKS:
        raise PlanError(f"walk {name!r} is not known; choose one of {', '.join(walk_names())}")
    return _WALKS[name](start, seed, index, policy)


def _flip_walk(start: PackedTerms, seed: int, index: int, policy: Policy) -> Walker:
    from .flipwalker import FlipWalker

    return FlipWalker(start, seed, index, policy)


register_walk("flip", _flip_walk)

"""Events of an improvement while it runs; it prints nothing itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...schemes_db import Scheme


@dataclass(frozen=True)
class Kept:
    """A certified scheme that the catalogue keeps; `before` is the rank that it betters, None where it betters a front.

    `full` are its full products, for structured targets.
    """

    scheme: Scheme
    before: int | None = None
    full: int | None = None


@dataclass(frozen=True)
class TurnBegun:
    """A turn on a target: by way of what, or with the command that repeats it."""

    target: str
    route: str


@dataclass(frozen=True)
class Walking:
    """How a turn stands."""

    target: str
    text: str


@dataclass(frozen=True)
class Exhausted:
    """A format that is worked on no more: every route to less than `rank` has been tried long enough, in vain."""

    target: str
    rank: int
    known: int


Event = Kept | TurnBegun | Walking | Exhausted
OnEvent = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Take no note of an event."""

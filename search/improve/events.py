"""Events of a running improvement, which prints nothing itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ...schemes_db import Scheme
from ..turn_fleet import Stop
from .folder import ImproveConfig


@dataclass(frozen=True)
class Kept:
    """A certified scheme stored in the catalogue.

    `before` is the rank that it improves, None where it improves a front; `full` is its number of full products,
    for structured targets.
    """

    scheme: Scheme
    before: int | None = None
    full: int | None = None


@dataclass(frozen=True)
class TurnBegun:
    """The start of a turn on a target; `route` describes it."""

    target: str
    route: str


@dataclass(frozen=True)
class Walking:
    """Progress of a turn, as text."""

    target: str
    text: str


@dataclass(frozen=True)
class Exhausted:
    """A format that is no longer searched: every route to less than `rank` has failed for long enough."""

    target: str
    rank: int
    known: int


Event = Kept | TurnBegun | Walking | Exhausted
OnEvent = Callable[[Event], None]


class Control(NamedTuple):
    """An improvement: its settings and threads, what watches it, ends it if True, and keeps its starts."""

    config: ImproveConfig
    jobs: int = 1
    on_event: OnEvent = lambda event: None
    stop: Stop = lambda: False
    on_start: Callable[[Scheme], None] = lambda scheme: None

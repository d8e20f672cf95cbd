"""When a walk leaves the flips."""

from __future__ import annotations

from typing import NamedTuple

MISS_LIMIT = 40
"""So many misses in a row mean that the active slots share buckets but no values."""

PLUS_TRIES = 16
"""Pairs that a plus draws before it gives up."""


class Policy(NamedTuple):
    """The patience of a walk, in steps (one draw each) but for the counts.

    Attributes:
        plus_after: steps without a plus or a new best after which the walk takes a plus.
        margin: a plus may lift the rank to at most this much above the walk's best.
        restart_after: steps without a new best after which the walk goes back to its start.
        trap: how often it may run out of flips without a new best before it goes back.
    """

    plus_after: int = 5_000
    margin: int = 2
    restart_after: int = 40_000_000
    trap: int = 2_000

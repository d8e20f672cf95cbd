"""When a walk leaves the flips, and which flips it does not make."""

from __future__ import annotations

from typing import NamedTuple

MISS_LIMIT = 40
"""So many misses in a row mean that the active slots share buckets but no values."""

PLUS_TRIES = 16
"""Pairs that a plus draws before it gives up."""

ANY_NONZEROS = 64
"""Nonzeros that any factor may have: no limit."""


class Policy(NamedTuple):
    """The patience of a walk, in steps (one draw each) but for the counts, and its bounds.

    Attributes:
        plus_after: steps without a plus or a new best after which the walk takes a plus.
        margin: a plus may lift the rank to at most this much above the walk's best.
        restart_after: steps without a new best after which the walk goes back to its start.
        trap: how often it may run out of flips without a new best before it goes back.
        chance: that a flip is made which leaves one more product full; squared for two (Metropolis).
        full: full products beyond this count as one rank more each; below 0, they count for nothing,
            and only decide between schemes of the same rank.
        nonzeros: coefficients that a factor may have.
        keep: so many terms at the beginning of the start stay as they are.
    """

    plus_after: int = 5_000
    margin: int = 2
    restart_after: int = 40_000_000
    trap: int = 2_000
    chance: float = 1.0
    full: int = -1
    nonzeros: int = ANY_NONZEROS
    keep: int = 0

    @property
    def guarded(self) -> bool:
        """Whether flips must be looked at before they are made."""
        return self.chance < 1 or self.full >= 0 or self.nonzeros < ANY_NONZEROS

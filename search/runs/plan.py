"""How many walks go how far in a round, and how the schemes that they find are gathered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..flipgraph.policy import Policy


class PoolPlan(NamedTuple):
    """How schemes are gathered between rounds, and how long walks from them go on.

    Attributes:
        large: schemes of a rank that are asked for near the goal; 0 for no pools, every walk for itself.
        small: schemes of a rank that are enough far from the goal.
        near: ranks above the goal that count as near.
        restart_rounds: rounds after which a walk without a gain starts anew from its pool.
        stall: rounds without a find after which every other walk goes to enlarge the pool.
        turn: without pools, steps after which a walk that found nothing tries the next start.
        leave: rounds without a lower rank after which a ladder proceeds to its next format.
        passed: schemes that are passed to the next format; with so many at the goal the ladder proceeds at once.
        linger: on a GPU, rounds that a ladder spends at most on more schemes after the first at its goal.
        tries: on a GPU, how often a ladder that finds nothing in a format returns for other schemes of the
            format before.
    """

    large: int = 48
    small: int = 4
    near: int = 5
    restart_rounds: int = 8
    stall: int = 200
    turn: int = 20_000_000
    leave: int = 500
    passed: int = 8
    linger: int = 0
    tries: int = 0


ALONE = PoolPlan(large=0)
"""The plan of walks without pools."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What an engine takes for a format and a walk where the user gives nothing.

    Attributes:
        walkers: how many walks there are; 0 for as many as the device holds.
        steps: steps of a walk in a round.
    """

    walkers: int
    steps: int
    policy: Policy
    plan: PoolPlan = ALONE

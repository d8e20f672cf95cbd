"""Settings of the walks of a round: their number and steps, and the collection of their schemes in pools.

The defaults of formats are in the table `data/settings.csv`. Its rows were selected by measured runs
(`lcma bench search`): the time to the best known rank.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

from ...schemes_db import Target
from ..flipgraph.policy import Policy
from ..flipgraph.walkers import walk_policy


class PoolPlan(NamedTuple):
    """Settings of pools of schemes between rounds, and of the length of walks from them.

    Attributes:
        large: size of a pool near the goal; 0 for independent walks without pools.
        small: size of a pool far from the goal.
        near: ranks above the goal that count as near.
        restart_rounds: rounds after which a walk without a gain restarts from its pool.
        stall: rounds without a find after which every other walk starts one rank higher, to enlarge the pool.
        turn: without pools, steps after which a walk without a find continues from the next start.
        leave: rounds without a lower rank after which a ladder proceeds to its next format.
        passed: schemes that are passed to the next format; the ladder proceeds at once with as many at the goal.
        linger: on a GPU, maximum rounds that a ladder spends on more schemes after the first at its goal.
        tries: on a GPU, how often a ladder without a find in a format returns for other schemes of the
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
    """Settings of the walks of a format; an engine has defaults for each format and walk.

    Attributes:
        walkers: number of walks; 0 for the most that fit on the device.
        steps: steps of a walk in a round.
    """

    walkers: int
    steps: int
    policy: Policy
    plan: PoolPlan = ALONE


WALKS, STEPS = 4, 1_000_000
"""Defaults for formats without a row in the table: rounds of a tenth of a second."""


def setting_for(target: Target, walk: str) -> Setting:
    """Return the settings of the table for a format, its sides in any order, and a walk; else defaults of the walk.

    Raises:
        PlanError: the walk is unknown.
    """
    own = Setting(walkers=WALKS, steps=STEPS, policy=walk_policy(walk))
    row = _table().get((_family(target), walk))
    if row is None:
        return own
    measured: dict[str, Any] = {name: int(row[name]) for name in ("plus_after", "margin", "restart_after")}
    return Setting(walkers=int(row["walks"]), steps=int(row["steps"]), policy=replace(own.policy, **measured))


def _family(target: Target) -> str:
    """Return the table key of a target: the sides in increasing order of a full product, else the name."""
    return "x".join(map(str, sorted(target.shape))) if target.is_general else target.name


@lru_cache(maxsize=1)
def _table() -> dict[tuple[str, str], dict[str, str]]:
    text = (resources.files("lcma.search") / "data" / "settings.csv").read_text(encoding="utf-8")
    return {(row["target"], row["walk"]): row for row in csv.DictReader(text.splitlines())}

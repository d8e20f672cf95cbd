"""Settings of the walks of a round: their number and steps, and the schemes that a ladder passes on.

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


class LadderPlan(NamedTuple):
    """Settings of the walks of a ladder: how long they stay with a start and a format, and what they pass on.

    Attributes:
        turn: on a processor, steps after which a walk without a find continues from the next start.
        leave: rounds without a lower rank after which a ladder proceeds to its next format.
        passed: schemes that are passed to the next format; the ladder proceeds at once with as many at the goal.
        linger: on a GPU, maximum rounds that a ladder spends on more schemes after the first at its goal.
        tries: on a GPU, how often a ladder without a find in a format returns for other schemes of the
            format before.
    """

    turn: int = 20_000_000
    leave: int = 500
    passed: int = 8
    linger: int = 0
    tries: int = 0


USUAL = LadderPlan()
"""The plan of ladders on a processor."""


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
    plan: LadderPlan = USUAL


WALKS, STEPS = 4, 1_000_000
"""Defaults for formats without a row in the table: rounds of a tenth of a second."""


def setting_for(target: Target, walk: str) -> Setting:
    """Return the settings of the table for a format, its sides in any order, and a walk; else defaults of the walk.

    Raises:
        PlanError: the walk is unknown.
    """
    own = Setting(walkers=WALKS, steps=STEPS, policy=walk_policy(walk))
    sides = "x".join(map(str, sorted(target.shape)))
    row = _table().get((sides if target.is_general else target.name, walk))
    if row is None:
        return own
    measured: dict[str, Any] = {name: int(row[name]) for name in ("plus_after", "margin", "restart_after")}
    return Setting(walkers=int(row["walks"]), steps=int(row["steps"]), policy=replace(own.policy, **measured))


@lru_cache(maxsize=1)
def _table() -> dict[tuple[str, str], dict[str, str]]:
    text = (resources.files("lcma.search") / "data" / "settings.csv").read_text(encoding="utf-8")
    return {(row["target"], row["walk"]): row for row in csv.DictReader(text.splitlines())}

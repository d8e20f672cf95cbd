"""The settings that have proven good for a format, for users who give none: `data/settings.csv`.

The rows are measured on our own runs (`lcma bench search`): the time to the best known rank.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from typing import Any

from ...schemes_db import Target
from ..flipgraph.walkers import walk_policy
from .plan import Setting

WALKS, STEPS = 4, 1_000_000
"""Where the table has no row: rounds of a tenth of a second."""


def setting_for(target: Target, walk: str) -> Setting:
    """The row of the table for a format, its sides in any order, and a kind of walk; else what suits the walk.

    Raises:
        PlanError: no such walk.
    """
    own = Setting(walkers=WALKS, steps=STEPS, policy=walk_policy(walk))
    row = _table().get((_family(target), walk))
    if row is None:
        return own
    measured: dict[str, Any] = {name: int(row[name]) for name in ("plus_after", "margin", "restart_after")}
    return Setting(walkers=int(row["walks"]), steps=int(row["steps"]), policy=replace(own.policy, **measured))


def _family(target: Target) -> str:
    """A full product by its sides in increasing order, any other target by its name."""
    return "x".join(map(str, sorted(target.shape))) if target.is_general else target.name


@lru_cache(maxsize=1)
def _table() -> dict[tuple[str, str], dict[str, str]]:
    text = (resources.files("lcma.search") / "data" / "settings.csv").read_text(encoding="utf-8")
    return {(row["target"], row["walk"]): row for row in csv.DictReader(text.splitlines())}

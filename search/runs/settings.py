"""Default settings of formats, from the table `data/settings.csv`.

The rows were selected by measured runs (`lcma bench search`): the time to the best known rank.
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

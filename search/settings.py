"""The settings that have proven good for a format, for users who give none: `data/settings.csv`.

The rows are measured on our own runs (`lcma bench search`): the time to the best known rank.
"""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

from ..schemes_db import Target
from .policy import Policy
from .walker import walk_policy


class Settings(NamedTuple):
    """Walks in a round, steps of each, and their patience."""

    walks: int
    steps: int
    policy: Policy


WALKS, STEPS = 4, 1_000_000
"""Where the table has no row: rounds of a tenth of a second."""


def settings_for(target: Target, walk: str) -> Settings:
    """The row of the table for a format, its sides in any order, and a kind of walk; else what suits the walk.

    Raises:
        PlanError: no such walk.
    """
    own = Settings(WALKS, STEPS, walk_policy(walk))
    row = _table().get((_family(target), walk))
    if row is None:
        return own
    patience = {name: int(row[name]) for name in ("plus_after", "margin", "restart_after")}
    return Settings(int(row["walks"]), int(row["steps"]), own.policy._replace(**patience))


def _family(target: Target) -> str:
    """A full product by its sides in increasing order, any other target by its name."""
    return "x".join(map(str, sorted(target.shape))) if target.is_general else target.name


@lru_cache(maxsize=1)
def _table() -> dict[tuple[str, str], dict[str, str]]:
    text = (resources.files("lcma.search") / "data" / "settings.csv").read_text(encoding="utf-8")
    return {(row["target"], row["walk"]): row for row in csv.DictReader(text.splitlines())}

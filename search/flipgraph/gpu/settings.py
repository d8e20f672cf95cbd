"""Default settings of formats on GPUs: policy and steps of a launch, by the table `data/gpu_settings.toml`."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib import resources
from typing import Any

from ....schemes_db import Target
from ...runs.plan import LadderPlan, Setting
from ..policy import LONGEST, Policy, Selection
from .layout import gpu_walk

LADDER = LadderPlan(passed=64, linger=60, leave=200, tries=24)
"""Plan for full products: distinct schemes are collected for the next format, for some seconds."""

TRIANGLES = LADDER._replace(passed=200, linger=200, leave=400)
"""Plan for structured targets, whose walks need many schemes of the format before."""

STEPS = 40_000
"""Steps of a launch where the table has none."""


def setting_for(target: Target, walk: str) -> Setting:
    """Return the settings of a format and a walk: its own, or those of the walk.

    Raises:
        PlanError: the walk does not run on GPUs.
    """
    gpu_walk(walk)
    name, plan = walk.partition(":")[0], LADDER if target.is_general else TRIANGLES
    sides = "x".join(map(str, sorted(target.shape))) if target.is_general else target.name
    longest = max(target.shape)
    fitting = (
        row
        for row in _table()
        if name in row["walks"] and row.get("target", sides) == sides and longest <= row.get("side", longest)
    )
    row = next(fitting)
    selection = Selection(*row["policy"].get("selection", ()))
    policy = Policy(**{"restart_after": LONGEST, **row["policy"], "selection": selection})
    return Setting(walkers=0, steps=row.get("steps", STEPS), policy=policy, plan=plan)


@lru_cache(maxsize=1)
def _table() -> list[dict[str, Any]]:
    text = (resources.files("lcma.search") / "data" / "gpu_settings.toml").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = tomllib.loads(text)["setting"]
    return rows

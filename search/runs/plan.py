"""What a run goes through: the formats of its ladder, then the target; and the settings of the walks of each.

The defaults of formats are in the tables `data/settings.csv`, of a processor, and `data/gpu_settings.toml`. Rows were
selected by measured runs (`lcma bench search`): the time to the best known rank.
"""

from __future__ import annotations

import csv
import re
import tomllib
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

from ...errors import PlanError
from ...schemes_db import Ring, Target, parse_target
from ...schemes_db.ranks import best_known
from ..flipgraph.gpu.layout import gpu_walk
from ..flipgraph.policy import LONGEST, Policy, Selection
from ..flipgraph.walkers import walk_policy

EASY_SIDE = 4
"""Longest side of formats that are searched from their own naive schemes."""

EASY_TERMS = 48
"""Maximum number of terms of other formats that are searched from their own naive schemes."""


@dataclass(frozen=True)
class FormatStage:
    """One format of a run, the rank wanted (None for the lowest possible), and its number of full products."""

    target: Target
    rank: int | None
    full: int | None = None

    def __str__(self) -> str:
        if self.rank is None:
            return self.target.name
        return f"{self.target}:{self.rank if self.full is None else f'{self.full}+{self.rank - self.full}'}"


def parse_stage(text: str, ring: Ring) -> FormatStage:
    """Parse a stage `TARGET:RANK`, `TARGET:FULL+HALF` or `TARGET`, which means the best known rank over the ring.

    Raises:
        TargetError: the target is not understood.
        PlanError: the rank is no number, or missing where the tables have none.
    """
    match = re.fullmatch(r"\s*(\d+x\d+x\d+.*?)(?::(\d+)(?:\+(\d+))?)?\s*", text)
    if match is None:
        raise PlanError(f"{text!r} is no step of a ladder: write TARGET, TARGET:RANK or TARGET:FULL+HALF")
    target = parse_target(match.group(1))
    if match.group(3):
        return FormatStage(target, int(match.group(2)) + int(match.group(3)), int(match.group(2)))
    if match.group(2):
        return FormatStage(target, int(match.group(2)))
    known = best_known(target, ring)
    if known is None:
        raise PlanError(f"no best known rank of {target} is in the tables: write {target}:RANK")
    return FormatStage(target, known.rank, known.full)


def formats_below(target: Target) -> tuple[str, ...]:
    """Return the formats of the default ladder to a full product, each one block longer than the one before.

    The longest side grows last, so 5x5x5 comes after 4x4x4, 4x4x5 and 4x5x5. Empty if the naive
    scheme of the target itself is a good start.
    """
    shape, found = list(target.shape), []
    while target.is_general and max(shape) > EASY_SIDE and shape[0] * shape[1] * shape[2] > EASY_TERMS:
        shape[shape.index(max(shape))] -= 1
        found.append("x".join(map(str, shape)))
    return tuple(reversed(found))


def corners_below(target: Target, ring: Ring) -> tuple[str, ...]:
    """Return the smaller square targets of the same structure as a square one, of those whose best ranks are known."""
    size, (_, _, form) = target.m, target.name.partition(":")
    if target.is_general or {*target.shape} != {size} or not form:
        return ()
    names = (f"{n}x{n}x{n}:{form}" for n in range(EASY_SIDE, size))
    return tuple(name for name in names if best_known(parse_target(name), ring) is not None)


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

GPU_PLAN = LadderPlan(passed=64, linger=60, leave=200, tries=24)
"""The plan for full products on a GPU: distinct schemes are collected for the next format, for some seconds."""

GPU_PLAN_OF_PARTS = GPU_PLAN._replace(passed=200, linger=200, leave=400)
"""The plan for structured targets on a GPU, whose walks need many schemes of the format before."""


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


WALKS, STEPS, GPU_STEPS = 4, 1_000_000, 40_000
"""Defaults for formats without a row in the table: rounds of a tenth of a second, and the steps of a launch."""


def setting_for(target: Target, walk: str) -> Setting:
    """Return the settings of the table for a format, its sides in any order, and a walk; else defaults of the walk.

    Raises:
        PlanError: the walk is unknown.
    """
    own = Setting(walkers=WALKS, steps=STEPS, policy=walk_policy(walk))
    row = _table().get((_name_in_tables(target), walk))
    if row is None:
        return own
    measured: dict[str, Any] = {name: int(row[name]) for name in ("plus_after", "margin", "restart_after")}
    return Setting(walkers=int(row["walks"]), steps=int(row["steps"]), policy=replace(own.policy, **measured))


def gpu_setting_for(target: Target, walk: str) -> Setting:
    """Return the settings of a format and a walk on GPUs: its own, or those of the walk.

    Raises:
        PlanError: the walk does not run on GPUs.
    """
    gpu_walk(walk)
    name, sides, longest = walk.partition(":")[0], _name_in_tables(target), max(target.shape)
    row = next(
        row
        for row in _gpu_table()
        if name in row["walks"] and row.get("target", sides) == sides and longest <= row.get("side", longest)
    )
    selection = Selection(*row["policy"].get("selection", ()))
    policy = Policy(**{"restart_after": LONGEST, **row["policy"], "selection": selection})
    plan = GPU_PLAN if target.is_general else GPU_PLAN_OF_PARTS
    return Setting(walkers=0, steps=row.get("steps", GPU_STEPS), policy=policy, plan=plan)


def _name_in_tables(target: Target) -> str:
    """Return the name of a target in both tables: a full product has its sides in increasing order."""
    return "x".join(map(str, sorted(target.shape))) if target.is_general else target.name


@lru_cache(maxsize=1)
def _table() -> dict[tuple[str, str], dict[str, str]]:
    rows = csv.DictReader(_text_of("settings.csv").splitlines())
    return {(row["target"], row["walk"]): row for row in rows}


@lru_cache(maxsize=1)
def _gpu_table() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(_text_of("gpu_settings.toml"))["setting"]
    return rows


def _text_of(table: str) -> str:
    return (resources.files("lcma.search") / "data" / table).read_text(encoding="utf-8")

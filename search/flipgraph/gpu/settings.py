"""Default settings of formats on GPUs: policy and steps of a launch, measured on one H200 where a comment says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....schemes_db import Target
from ...runs.plan import LadderPlan, Setting
from ..policy import Policy, Selection
from .layout import gpu_walk
from .numbers import LONGEST

LADDER = LadderPlan(passed=64, linger=60, leave=200, tries=24)
"""Plan for full products: distinct schemes are collected for the next format, for some seconds."""

TRIANGLES = LADDER._replace(passed=200, linger=200, leave=400)
"""Plan for structured targets, whose walks need many schemes of the format before."""


def _setting(steps: int = 40_000, plan: LadderPlan = LADDER, **given: Any) -> Setting:
    """Return settings with the most walkers that fit, 30 to 80 ms of steps a launch, and restarts only if `given`."""
    return Setting(walkers=0, steps=steps, policy=Policy(**{"restart_after": LONGEST, **given}), plan=plan)


_WIDE = Selection(10, 0.2, 0.2, islands=8)
"""Selection that preserves diversity; a stronger one converges sooner to copies of one scheme."""

_RANK = _setting(plus_after=50_000, selection=_WIDE)

_TABLE = {
    # 47 in 2 s; selection ends at 49. After 7 s 20 walkers had rank 47; with margin 2 13, with margin 3 15,
    # and with margin 2 and plus 2.5k 18, plus 10k 10
    ("Z2", "4x4x4"): _setting(60_000, plus_after=5_000, margin=1, trap_rank=49),
    # 47 with 4 of 4 seeds in 2.4 to 4.8 s; without islands in 2.8 to 3.6 s with 3 of 4, the fourth not in 14 s.
    # With plus 30k and margin 2: 3.6 to 8.6 s; plus 100k, (20, .2, .05): 2 of 3.
    ("Z2", "3x4x5"): _setting(plus_after=50_000, margin=4, selection=Selection(10, 0.3, 0.1, 8)),
    ("Z2", "4x4x5"): _setting(20_000, plus_after=20_000),  # 60 in 0.3 s from 4x4x4:47
    # 73 in 3 to 5 s from 4x4x5:60, or not in 20 s
    ("Z2", "4x5x5"): _setting(20_000, plus_after=50_000, selection=_WIDE),
    ("Z2", "5x5x5"): _setting(20_000, plus_after=50_000, selection=_WIDE),  # 96 in 1 to 2 s from 97
    # 49 with 5 of 5 seeds in 8.4 to 13.9 s; plus 50k: 11 to 13 s, margin 4 no other; plus 10k: not in 13 s
    ("ZT", "4x4x4"): _setting(plus_after=200_000),
}


def setting_for(target: Target, walk: str) -> Setting:
    """Return the settings of a format and a walk: its own, or those of the walk.

    Raises:
        PlanError: the walk does not run on GPUs.
    """
    kind, plan = gpu_walk(walk), LADDER if target.is_general else TRIANGLES
    if kind.reversible and not kind.symmetric:
        # From naive: 4x4x5:61 in 9 s, 2x5x6:47 in 7 s; all walkers of 4x5x5 are at 77 after 5 s, and after 40 s.
        return _setting(plus_after=50_000, margin=6, selection=_WIDE)
    if kind.reversible and target.shape == (6, 6, 6):
        # 153 with 6 of 6 seeds in 29 to 72 s. With margin 60, restarts after 167 M steps and no selection: 3 of 3 in
        # 50 to 70 s; with plus 300k, 8,448 walkers and no selection: 165 in 150 s.
        selection = Selection(20, 0.1, 0.5, islands=64)
        return _setting(plus_after=83_000, margin=7, orbits="whole", selection=selection)
    if kind.reversible:
        # Orbits of any size. 6x6x6 in 50 s: 159; with plus 2k and margin 7 161, plus 20k and margin 12 or plus 83k and
        # margin 60 162.
        return _setting(plus_after=5_000, margin=24)
    if kind.symmetric:
        return _setting(plus_after=2_000, margin=7, restart_after=20_000_000)
    if kind.cost == "full":
        # A full product counts 31 + 23, a half one 23; 4x4x4:tri-left falls to 22 + 12 in a fifth of a second.
        biased: dict[str, Any] = {"cost": "full", "rank_weight": 23, "cost_weight": 31, "chance": 0.15, "plan": plan}
        if max(target.shape) > 4:
            return _setting(plus_after=50_000, margin=2, selection=Selection(12, 0.3, 0.1, 8), **biased)
        return _setting(plus_after=20_000, margin=3, **biased)
    ring = "ZT" if kind.ternary else "Z2"
    shape = "x".join(str(side) for side in sorted(target.shape))
    return _TABLE.get((ring, shape), _RANK) if target.is_general else replace(_RANK, plan=plan)

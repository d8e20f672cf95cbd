"""Stages of a run: the formats of its ladder in order, then the target."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...errors import PlanError
from ...schemes_db import Ring, Target, parse_target
from ...schemes_db.ranks import best_known

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

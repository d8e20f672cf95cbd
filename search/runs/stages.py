"""The formats that a run goes through, one after the other: a ladder, or the target alone."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...errors import PlanError
from ...schemes_db import Ring, Target, parse_target
from ...schemes_db.ranks import best_known

EASY_SIDE = 4
"""Formats with no longer side are reached from their own naive schemes."""

EASY_TERMS = 48
"""Formats with no more terms are, too."""


@dataclass(frozen=True)
class Stage:
    """One format of a run, the rank that walks go for, None for as low as they get, and the full products of it."""

    target: Target
    rank: int | None
    full: int | None = None

    def __str__(self) -> str:
        if self.rank is None:
            return self.target.name
        return f"{self.target}:{self.rank if self.full is None else f'{self.full}+{self.rank - self.full}'}"


def parse_stage(text: str, ring: Ring) -> Stage:
    """The stage `TARGET:RANK`, `TARGET:FULL+HALF` or `TARGET`, which means the best known rank over the ring.

    Raises:
        TargetError: the target is not understood.
        PlanError: the rank is no number, or missing where the tables have none.
    """
    match = re.fullmatch(r"\s*(\d+x\d+x\d+.*?)(?::(\d+)(?:\+(\d+))?)?\s*", text)
    if match is None:
        raise PlanError(f"{text!r} is no step of a ladder: write TARGET, TARGET:RANK or TARGET:FULL+HALF")
    target = parse_target(match.group(1))
    if match.group(3):
        return Stage(target, int(match.group(2)) + int(match.group(3)), int(match.group(2)))
    if match.group(2):
        return Stage(target, int(match.group(2)))
    known = best_known(target, ring)
    if known is None:
        raise PlanError(f"no best known rank of {target} is in the tables: write {target}:RANK")
    return Stage(target, known.rank, known.full)


def formats_below(target: Target) -> tuple[str, ...]:
    """The formats that lead to a full product, each one block longer than the one before.

    The longest side grows last, so 5x5x5 comes after 4x4x4, 4x4x5 and 4x5x5. None where the naive
    scheme of the target itself is a good start.
    """
    shape, found = list(target.shape), []
    while target.is_general and max(shape) > EASY_SIDE and shape[0] * shape[1] * shape[2] > EASY_TERMS:
        shape[shape.index(max(shape))] -= 1
        found.append("x".join(map(str, shape)))
    return tuple(reversed(found))


def corners_below(target: Target, ring: Ring) -> tuple[str, ...]:
    """The smaller targets of the same structure that lead to a square one, as far as their best ranks are known."""
    size, (_, _, form) = target.m, target.name.partition(":")
    if target.is_general or {*target.shape} != {size} or not form:
        return ()
    names = (f"{n}x{n}x{n}:{form}" for n in range(EASY_SIDE, size))
    return tuple(name for name in names if best_known(parse_target(name), ring) is not None)

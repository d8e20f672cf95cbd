"""Formats for which the catalogue's rank is above the best known one, and what a lower rank of theirs changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from ...schemes_db import Ring, Target, Z, parse_ring
from ...schemes_db.composed_ranks import BOARD_SIDE, Constructions
from ...schemes_db.factor import IntArray
from ...schemes_db.ranks import best_known, board
from ...schemes_db.uneven import Shape
from ..terms.packed import MAX_TERMS
from ..terms.words import is_wide

ROOM = 12
"""Slots of a walk that its start leaves for other terms."""


def is_walkable(target: Target, ternary: bool = False) -> bool:
    """Return whether walks hold a format: with more than 64 blocks a factor only modulo 2, and of a rank below 500."""
    if not is_wide(target):
        return True
    known = best_known(target, Z)
    return not ternary and known is not None and known.rank < MAX_TERMS - ROOM


class Influence(NamedTuple):
    """What a lower rank of a format does to the formats of the table, by compositions: how many of them have a lower
    rank then, and by how many percent points their mean gap to the best known ranks falls."""

    cells: int
    points: float


@dataclass(frozen=True)
class Gap:
    """A format for which the lowest rank of stored schemes and their compositions is above the best known one.

    `one` is the influence of one product fewer, `all` that of the best known rank; None: not computed.
    """

    target: Target
    rank: int
    known: int
    one: Influence | None = None
    all: Influence | None = None

    @property
    def priority(self) -> float:
        """By how much the mean gap of the table falls with the best known rank: turns have time in proportion."""
        return self.all.points if self.all else float(self.rank - self.known)


def formats_up_to(limit: Shape) -> Iterator[Target]:
    """Yield all full products with sides from 2, in increasing order, that fit into a format."""
    for shape in combinations_with_replacement(range(2, max(limit) + 1), 3):
        if all(x <= y for x, y in zip(shape, sorted(limit), strict=True)):
            yield Target.general(*shape)


def gaps(kept: Mapping[Shape, int], ring: Ring, formats: Iterable[Target]) -> list[Gap]:
    """Return the gaps of some formats, given the lowest stored ranks `kept`; sides are in increasing order."""
    found = (_gap(tuple(sorted(kept.items())), ring.name, target.shape) for target in formats)
    return [gap for gap in found if gap is not None]


@lru_cache(maxsize=1 << 12)
def _gap(kept: tuple[tuple[Shape, int], ...], ring: str, shape: Shape) -> Gap | None:
    target = Target.general(*shape)
    known = best_known(target, parse_ring(ring))
    if known is None or max(shape) > BOARD_SIDE:
        return None
    constructions = _constructions(kept, ring)
    rank = int(constructions.ranks[shape])
    if rank <= known.rank:
        return None
    one = _influence(constructions, ring, shape, rank - 1)
    every = one if known.rank == rank - 1 else _influence(constructions, ring, shape, known.rank)
    return Gap(target, rank, known.rank, one, every)


@lru_cache(maxsize=4)
def _constructions(kept: tuple[tuple[Shape, int], ...], ring: str) -> Constructions:
    return Constructions(dict(kept), BOARD_SIDE, ring)


def _influence(constructions: Constructions, ring: str, shape: Shape, rank: int) -> Influence:
    """Return what a rank of a format changes; 15 to 25 ms."""
    places, known = _table(ring)
    fall = (constructions.ranks - constructions.with_rank(shape, rank))[places]
    return Influence(int((fall > 0).sum()), float((100 * fall / known).mean()))


@lru_cache(maxsize=4)
def _table(ring: str) -> tuple[tuple[IntArray, ...], IntArray]:
    """Return the places of the formats with a best known rank over a ring in a table of ranks, and these ranks."""
    found = {shape: best_known(Target.general(*shape), parse_ring(ring)) for shape in board()}
    places = tuple(np.array([shape for shape, known in found.items() if known is not None]).T)
    return places, np.array([known.rank for known in found.values() if known is not None])

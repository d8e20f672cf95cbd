"""Formats for which the catalogue's rank is above the best known one, and their priorities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement

from ...schemes_db import Ring, Target
from ...schemes_db.composition import ranks_up_to
from ...schemes_db.ranks import best_known
from ...schemes_db.uneven import Shape

BLOCKS = 64
"""Maximum number of blocks of a factor in a walk: the bits of a word."""


def is_walkable(target: Target) -> bool:
    """Return whether walks hold the factors of a target."""
    m, k, n = target.shape
    return max(m * k, k * n, m * n) <= BLOCKS


@dataclass(frozen=True)
class Gap:
    """A format for which the lowest rank of stored schemes and their compositions is above the best known one."""

    target: Target
    rank: int
    known: int

    @property
    def priority(self) -> float:
        """Ranks to gain, divided by the size m k n of the format."""
        m, k, n = self.target.shape
        return (self.rank - self.known) / (m * k * n)


def formats_up_to(limit: Shape) -> Iterator[Target]:
    """Yield all full products with sides from 2, in increasing order, that fit into a format."""
    for shape in combinations_with_replacement(range(2, max(limit) + 1), 3):
        if all(x <= y for x, y in zip(shape, sorted(limit), strict=True)):
            yield Target.general(*shape)


def gaps(kept: Mapping[Shape, int], ring: Ring, formats: Iterable[Target]) -> list[Gap]:
    """Return the gaps of some formats, given the lowest stored ranks `kept`; sides are in increasing order."""
    found = []
    for target in formats:
        known = best_known(target, ring)
        rank = int(ranks_up_to(max(target.shape), kept, ring.name)[target.shape])
        if known is not None and rank > known.rank:
            found.append(Gap(target, rank, known.rank))
    return found

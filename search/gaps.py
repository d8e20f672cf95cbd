"""Where the catalogue is behind the best ranks known, and what to try there next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement

from ..schemes_db import Ring, Target
from ..schemes_db.ranks import best_known

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Gap:
    """A format for which the kept rank is above the best known; without a kept scheme, the naive one counts."""

    target: Target
    rank: int
    known: int

    def promise(self, tries: int) -> float:
        """What a run is worth after so many in vain: ranks to gain, by the work of a format of this size."""
        m, k, n = self.target.shape
        return (self.rank - self.known) / (m * k * n) / (1 + tries)


def formats_up_to(limit: Shape) -> Iterator[Target]:
    """All full products with sides from 2, in increasing order, that fit into a format."""
    for shape in combinations_with_replacement(range(2, max(limit) + 1), 3):
        if all(x <= y for x, y in zip(shape, sorted(limit), strict=True)):
            yield Target.general(*shape)


def gaps(kept: Mapping[Shape, int], ring: Ring, limit: Shape) -> list[Gap]:
    """The formats up to a limit where ranks are to be gained; `kept` has the kept ranks, sides in increasing order."""
    found = []
    for target in formats_up_to(limit):
        known = best_known(target, ring)
        rank = kept.get(target.shape, len(target.terms))
        if known is not None and rank > known.rank:
            found.append(Gap(target, rank, known.rank))
    return found

"""The rank tables of the index: general formats as heat maps by ring, structured targets as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from ...schemes_db import Ring, Target, parse_ring
from ...schemes_db.composition import Part, best_composition
from ...schemes_db.ranks import KnownRank, best_known
from ..scheme_record import SchemeRecord, level
from .listing import merit

SIZES = {"Z": range(2, 17), "Q": range(2, 17)}
"""The maps of these rings go from 2x2x2 to 16x16x16, as the table of best known ranks does there."""

FEWER_SIZES = range(2, 9)
"""The maps of the other rings go to 8x8x8."""

MAX_RINGS = 8
MAX_STRUCTURED = 150

_ORDER = ("Z", "Q", "Z2", "Z3", "Q(i)")


@dataclass(frozen=True)
class Cell:
    """One format: the best known rank, our best scheme, and the best composition of schemes where that is lower."""

    shape: tuple[int, int, int]
    known: KnownRank | None
    ours: SchemeRecord | None
    composed: Part | None = None

    @property
    def rank(self) -> int | None:
        """Our lowest rank; None where there is neither a scheme nor a composition."""
        if self.composed:
            return self.composed.rank
        return self.ours.entry.rank if self.ours else None

    @property
    def gap(self) -> int | None:
        return self.rank - self.known.rank if self.rank is not None and self.known else None

    @property
    def level(self) -> str:
        return level(self.rank, self.known.rank if self.known else None) if self.rank is not None else "open"

    @property
    def label(self) -> str:
        """The text of the cell, short for the hundreds of composed ones: `lcma compose` prints the rest."""
        if self.composed:
            return f"{self.composed.how}, best known {self.known.rank}" if self.known else self.composed.how
        known = f"best known {self.known.rank} ({self.known.source})" if self.known else "no figure in the tables"
        ours = f"rank {self.ours.entry.rank} over {self.ours.entry.ring}" if self.ours else "no scheme here yet"
        return f"{'x'.join(map(str, self.shape))}: {ours}, {known}"


@dataclass(frozen=True)
class HeatMap:
    """All formats over one ring, m <= k <= n, by their sides."""

    ring: str
    sizes: range
    cells: Mapping[tuple[int, int, int], Cell]

    @property
    def held(self) -> list[Cell]:
        """The cells in which we have a scheme of our own, and no composition is lower."""
        return [cell for cell in self.cells.values() if cell.ours and not cell.composed]

    def counted(self, *levels: str) -> int:
        """Return the number of cells of these levels."""
        return sum(cell.level in levels for cell in self.cells.values())


def heat_maps(listed: Sequence[SchemeRecord]) -> list[HeatMap]:
    """One map a ring: Z, Q and Z2, and what other rings the catalogue has."""
    present = {row.entry.ring for row in listed} | {"Z", "Q", "Z2"}
    rings = [name for name in _ORDER if name in present]
    rings += sorted(present - set(_ORDER), key=lambda name: parse_ring(name).characteristic)
    return [_heat_map(parse_ring(name), listed) for name in rings[:MAX_RINGS]]


def _heat_map(ring: Ring, listed: Sequence[SchemeRecord]) -> HeatMap:
    best: dict[tuple[int, ...], SchemeRecord] = {}
    over = (ring.name, "Z", "Q") if ring.gaussian else (ring.name, "Z")  # schemes that are ones over it as they stand
    for row in listed:
        if row.target.is_general and row.entry.ring in over:
            key = tuple(sorted(row.target.shape))
            best[key] = min(best.get(key, row), row, key=merit)
    kept = {(m, k, n): (row.entry.rank, row.entry.digest) for (m, k, n), row in best.items()}

    every, cells = SIZES.get(ring.name, FEWER_SIZES), {}
    for shape in combinations_with_replacement(every, 3):
        part = best_composition(shape, kept, ring.name)
        lower = part if part.how not in ("scheme", "naive") else None
        cells[shape] = Cell(shape, best_known(Target.general(*shape), ring), best.get(shape), lower)
    return HeatMap(ring.name, every, cells)


def structured(listed: Sequence[SchemeRecord]) -> list[SchemeRecord]:
    """The best scheme of each triangular or masked target and ring, at most `MAX_STRUCTURED`."""
    return [row for row in listed if row.best and not row.target.is_general][:MAX_STRUCTURED]

"""The formats up to 16 x 16 x 16: our lowest ranks, of schemes and compositions, beside the best known ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..schemes_db import Z2, Certificate, Q, Scheme, Target, Z, parse_ring
from ..schemes_db.catalog import Catalog
from ..schemes_db.composition import Part, best_composition, build
from ..schemes_db.ranks import KnownRank, best_known, board
from ..schemes_db.recipes import shape_text
from ..schemes_db.uneven import Shape
from ..verify import certify
from .output import readers

LARGEST = 16
"""The longest side of a format of the table."""

_COLUMNS = readers("board")


@dataclass(frozen=True)
class BoardCell:
    """A format over a ring ("ZT": coefficients -1, 0, 1): our best composition, and the table's rank."""

    shape: Shape
    ring: str
    part: Part
    known: KnownRank

    @property
    def name(self) -> str:
        return shape_text(self.shape)

    @property
    def below_any(self) -> bool:
        """Whether our rank is below the table's best over any field of characteristic 0."""
        known = best_known(Target.general(*self.shape), Q)
        return known is not None and self.part.rank < known.rank

    @property
    def gap(self) -> int:
        """Our rank less the table's: negative where ours is lower."""
        return self.part.rank - self.known.rank

    @property
    def excess(self) -> float:
        """The gap as a part of the table's rank."""
        return self.gap / self.known.rank

    @property
    def construction(self) -> str:
        """How the scheme is made, in a few words."""
        if self.part.how in ("scheme", "naive"):
            return {"scheme": "a scheme of its own", "naive": "the classical algorithm"}[self.part.how]
        return f"{self.part.how} of {' and '.join(f'{shape_text(one.shape)}:{one.rank}' for one in self.part.parts)}"

    def to_json(self) -> dict[str, object]:
        """The cell as JSON values."""
        return {name: read(self) for name, read in _COLUMNS.items()}


def summary(cells: Sequence[BoardCell]) -> dict[str, Any]:
    """What some cells, one or more, come to; gaps are parts of one, and count as negative below the table."""
    worst = max(cells, key=lambda cell: (cell.excess, cell.shape))
    return {
        "formats": len(cells),
        "mean_gap": sum(cell.excess for cell in cells) / len(cells),
        "worst_gap": worst.excess,
        "worst": worst.name,
        "at_or_below": sum(cell.gap <= 0 for cell in cells),
        "below": sum(cell.gap < 0 for cell in cells),
        "sum_of_ranks": sum(cell.part.rank for cell in cells),
        "sum_of_table": sum(cell.known.rank for cell in cells),
    }


def board_cells(catalog: Catalog, ring: str = "Z", up_to: int = LARGEST) -> list[BoardCell]:
    """All formats of the table with sides up to a number, by size."""
    kept = catalog.best_ranks(ring)
    cells = []
    for shape in board():
        known = best_known(Target.general(*shape), parse_ring("Z" if ring == "ZT" else ring), ring == "ZT")
        if shape[2] <= up_to and known is not None:
            cells.append(BoardCell(shape, ring, best_composition(shape, kept, ring), known))
    return cells


def composed(part: Part, shape: Shape, catalog: Catalog, ring: str = "Z") -> tuple[Scheme, Certificate]:
    """The scheme of a composition over a ring ("ZT": over Z), and the proof of it."""
    over = parse_ring("Z" if ring == "ZT" else ring)

    def named(name: str) -> Scheme:
        scheme = catalog.find(name)[0]
        binary = scheme.over_z2() if over == Z2 and scheme.ring == Z else None
        return binary or scheme

    scheme = build(part, shape, named, over)
    return scheme, certify(scheme)

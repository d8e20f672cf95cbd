"""The parts of the index beside the rank tables: a scatter plot of structured schemes, fewest additions, records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...schemes_db import Z, costs
from ...schemes_db.algebra import naive
from ...schemes_db.ranks import KnownAdditions, known_additions
from ..scheme_record import SchemeRecord

WIDTH, HEIGHT, MARGIN = 720, 360, 46
"""The plot in SVG units; the margin holds the labels of the axes."""

MAX_POINTS = 300


@dataclass(frozen=True)
class FrontPoint:
    """A structured scheme in the plot: `share` is F + H/2 over that of the products block by block."""

    row: SchemeRecord
    share: float
    x: float
    y: float

    @property
    def label(self) -> str:
        """The text of the point."""
        entry = self.row.entry
        return (
            f"{self.row.label}: rank {entry.rank}, {entry.full_products} full + {entry.half_products} half, "
            f"{100 * self.share:.1f}% of block by block, {entry.additions} additions"
        )


@dataclass(frozen=True)
class Plot:
    """The points with the ticks of both axes, each (position, text)."""

    points: tuple[FrontPoint, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    width: int = WIDTH
    height: int = HEIGHT
    margin: int = MARGIN


def front_plot(listed: Sequence[SchemeRecord]) -> Plot | None:
    """Rank against cost of the structured schemes over Z, or None where there are none."""
    rows = [row for row in listed if row.target.is_product and not row.target.is_general and row.entry.ring == Z.name]
    rows = rows[:MAX_POINTS]
    if not rows:
        return None
    plain = [costs.full_and_half(naive(row.target)) for row in rows]
    shares = [row.cost / (full + half / 2) for row, (full, half) in zip(rows, plain, strict=True)]
    largest = 20 * (max(row.entry.rank for row in rows) // 20 + 1)
    low, high = 5 * int(min(shares) * 20), 5 * (int(max(shares) * 20) + 1)

    def across(rank: float) -> float:
        return round(MARGIN + (WIDTH - 2 * MARGIN) * rank / largest, 1)

    def up(percent: float) -> float:
        return round(HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (percent - low) / (high - low), 1)

    points = tuple(
        FrontPoint(row, share, across(row.entry.rank), up(100 * share)) for row, share in zip(rows, shares, strict=True)
    )
    step = max(20, largest // 6 // 20 * 20)
    return Plot(
        points,
        tuple((across(rank), str(rank)) for rank in range(0, largest + 1, step)),
        tuple((up(percent), f"{percent}%") for percent in range(low, high + 1, 5)),
    )


@dataclass(frozen=True)
class Fewest:
    """The fewest additions of a format: ours at our lowest rank, and the tables'."""

    row: SchemeRecord
    known: KnownAdditions

    @property
    def shared(self) -> int:
        """Our additions with shared sums."""
        return self.row.entry.additions if self.row.entry.additions_cse is None else self.row.entry.additions_cse

    @property
    def level(self) -> str:
        """`record` where ours are fewer, g0 where equal, g3 where more; `none` where our rank is not the best known."""
        if self.row.entry.rank != self.known.rank:
            return "none"
        return "record" if self.shared < self.known.shared else "g0" if self.shared == self.known.shared else "g3"


def fewest_additions(listed: Sequence[SchemeRecord]) -> list[Fewest]:
    """A row for each general format over Z with a figure in the tables, by size."""
    best: dict[tuple[int, ...], Fewest] = {}
    for row in listed:
        if row.entry.ring != Z.name or not (known := known_additions(row.target)):
            continue
        mine, key = Fewest(row, known), tuple(sorted(row.target.shape))
        if key not in best or (row.entry.rank, mine.shared) < (best[key].row.entry.rank, best[key].shared):
            best[key] = mine
    return [best[key] for key in sorted(best)]


def records(listed: Sequence[SchemeRecord]) -> list[SchemeRecord]:
    """The best schemes of targets that are below every figure in the tables."""
    return [row for row in listed if row.level == "record" and row.best]

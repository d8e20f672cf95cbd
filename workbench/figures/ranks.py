"""The rank table: our lowest rank of each format and its distance from the best known; and the ranks of 2 x n x n."""

from __future__ import annotations

from pathlib import Path

from ...schemes_db import Target, Z
from ...schemes_db.catalog import Catalog
from ...schemes_db.composed_ranks import BOARD_SIDE
from ...schemes_db.composition import best_composition
from ...schemes_db.ranks import best_known
from ..board import board_cells
from .canvas import COLOURS, MARKERS, Drawn, axes, drawn, ticks

LARGEST = 5
"""The table goes up to 5x5x5; the catalogue's pages go up to 8x8x8."""

FILLS = ("#17734f", "#a9dcb9", "#f1e5a0", "#f6c794")


def gaps(results: Path | None = None) -> dict[tuple[int, int, int], tuple[int, int]]:
    """Our rank over Z, by a scheme or a composition of shipped ones, and the best known, by format; no results are
    read."""
    with Catalog.in_memory() as catalog:
        return {cell.shape: (cell.part.rank, cell.known.rank) for cell in board_cells(catalog, up_to=LARGEST)}


def draw_ranks(found: dict[tuple[int, int, int], tuple[int, int]]) -> Drawn:
    """A cell a format."""
    from matplotlib.patches import Rectangle

    figure, panel = axes("ranks", height=2.9)
    rows = [(m, k) for m in range(2, LARGEST + 1) for k in range(m, LARGEST + 1)]
    columns = sorted({n for _, _, n in found})
    for (m, k, n), (ours, known) in found.items():
        x, y = rows.index((m, k)), columns.index(n)
        gap = ours - known
        fill = FILLS[min(gap, 3)] if gap >= 0 else "#5d2a8c"
        panel.add_patch(Rectangle((x + 0.04, y + 0.04), 0.92, 0.92, facecolor=fill, edgecolor="none"))
        ink = "white" if gap <= 0 else "black"
        panel.text(x + 0.5, y + 0.36, str(ours), ha="center", va="center", fontsize=11, color=ink)
        panel.text(x + 0.5, y + 0.74, f"{gap:+d}" if gap else "=", ha="center", va="center", fontsize=9, color=ink)
    panel.set_xlim(0, len(rows))
    panel.set_ylim(len(columns), 0)
    panel.set_xticks([place + 0.5 for place in range(len(rows))], [f"{m}x{k}" for m, k in rows], fontsize=10)
    panel.set_yticks([place + 0.5 for place in range(len(columns))], [f"x{n}" for n in columns], fontsize=11)
    panel.grid(visible=False)
    panel.tick_params(length=0)
    for spine in panel.spines.values():
        spine.set_visible(False)
    equal = sum(ours <= known for ours, known in found.values())
    above = ", ".join(
        f"{m}x{k}x{n} {ours} ({ours - known:+d})" for (m, k, n), (ours, known) in found.items() if ours > known
    )
    others = f", others are above: {above}" if above else ""
    return drawn("ranks", figure, formats=len(found), side=LARGEST, equal=equal, others=others)


def ratios(results: Path | None = None) -> dict[int, tuple[float, float]]:
    """Our rank of n x 2 x n over Z by n, and the best known, each over n^2; no results are read."""
    with Catalog.in_memory() as catalog:
        kept = catalog.best_ranks("Z")
    found = {}
    for n in range(2, BOARD_SIDE + 1):
        known = best_known(Target.general(2, n, n), Z)
        assert known is not None  # the table has them all
        found[n] = best_composition((2, n, n), kept).rank / n**2, known.rank / n**2
    return found


def draw_ratios(found: dict[int, tuple[float, float]]) -> Drawn:
    """A line for our ranks and one for the best known."""
    figure, panel = axes("triples")
    for place, label in enumerate(("ours", "best known")):
        line = [both[place] for both in found.values()]
        panel.plot([*found], line, color=COLOURS[place], marker=MARKERS[place], label=label)
    panel.axhline(1.5, color="0.6", linewidth=1)
    panel.legend(fontsize=11, frameon=False)
    ticks(panel.xaxis, range(2, BOARD_SIDE + 1, 2))
    lines = ", ".join(f"{n}: {ours:.3f} ({known:.3f})" for n, (ours, known) in found.items())
    return drawn("triples", figure, lines=lines)

"""Figures 12 to 14 of the Kronecker-sparse paper from the rows of suite `ks` on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

from ..bench.ks_figures import (
    BMM_FIGURE,
    GENERIC_FIGURE,
    LAYOUT_RATIOS,
    Speedup,
    by_decade,
    layout_panel,
    layout_ratios,
    paper_median,
    size_panel,
    speedups,
)
from ..bench.ks_tables import AUTO, BMM, Comparison
from .canvas import COLOURS, Drawn, axes, labelled, rows_of

DTYPE = "float32"

NAMES = {AUTO: "ours"}
"""Contenders as axes name them."""


def points_of(comparison: Comparison, results: Path) -> list[Speedup]:
    """The ratios of a comparison by size."""
    return speedups(list(rows_of(results, "ks-cuda").values()), DTYPE, comparison)


def ratios_of(results: Path) -> dict[str, list[float]]:
    """Time batch-first over time batch-last by contender."""
    return layout_ratios(list(rows_of(results, "ks-cuda").values()), DTYPE)


def _draw_sizes(comparison: Comparison, y: str, title: str, about: str, points: Sequence[Speedup]) -> Drawn:
    figure, panel = axes()
    paper = paper_median(DTYPE, comparison)
    size_panel(panel, points, paper, COLOURS[0])
    panel.set_xticks([10.0**power for power in range(4, 11)], [f"1e{power}" for power in range(4, 11)])
    panel.set_xticks([], minor=True)
    low, high = (end([paper or 1.0, *(one.ratio for one in points)]) for end in (min, max))
    panel.set_ylim(0.8 * low, 1.3 * high)
    ticks = [tick for tick in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if 0.8 * low <= tick <= 1.3 * high]
    panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.set_yticks([], minor=True)
    labelled(panel, "rows x columns (dashed: the paper's median, A100)", y, title)
    return Drawn(figure, f"{about} {_medians(points)}")


def _medians(points: Sequence[Speedup]) -> str:
    """Return the wins, and the medians by decade, in words."""
    found = ", ".join(
        f"{median(ratios):.2g} at 1e{decade} ({len(ratios)})" for decade, ratios in sorted(by_decade(points).items())
    )
    bounds = sum(one.at_least for one in points)
    hollow = f" {bounds} ratios are lower bounds." if bounds else ""
    return f"{sum(one.ratio > 1 for one in points)} of {len(points)} above 1; medians by decade {found}.{hollow}"


draw_generic = partial(
    _draw_sizes,
    GENERIC_FIGURE,
    "csr, dense / ours, bmm, einsum, bsr",
    "Figure 12: with and without structure",
    "Time of the faster of CSR and the dense matrix over that of the fastest product that uses the pattern, by size, "
    "on an H200 in float32; the paper has a median of 6.5 over the 98.1% won.",
)

draw_bmm = partial(
    _draw_sizes,
    BMM_FIGURE,
    "einsum, bsr / bmm",
    "Figure 13: the permuted batched GEMM",
    "Time of the faster of einsum and BSR over that of the permuted batched GEMM, by size, on an H200 in float32; in "
    "the paper it is the fastest for all large sizes, over all baselines by a median of 1.36 on the 90% won.",
)


def draw_layouts(ratios: dict[str, list[float]]) -> Drawn:
    """A box for each contender."""
    figure, panel = axes()
    layout_panel(panel, ratios, True)
    panel.set_xticks(range(1, len(ratios) + 1), [NAMES.get(name, name) for name in ratios])
    labelled(panel, "diamonds: the paper (its kernel, bmm)", "batch-first / batch-last", "Figure 14: layouts, float32")
    words = ", ".join(f"{NAMES.get(name, name)} {median(found):.2f} ({len(found)})" for name, found in ratios.items())
    return Drawn(
        figure,
        f"Time batch-first over time batch-last on an H200 in float32, medians over patterns: {words}; the paper has "
        f"about {LAYOUT_RATIOS[AUTO]:g} for its kernel and {LAYOUT_RATIOS[BMM]:g} for bmm.",
    )

"""Figures 12 to 14 of the Kronecker-sparse paper from the rows of suite "ks", in half precision its 15, 16 and 14b.

Source: Gonon, Zheng, Carrivain, Le, "Fast Inference with Kronecker-Sparse Matrices" (ICML 2025), appendix E. As there,
boxes end at the quartiles and whiskers at the 5th and the 95th percentile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .ks_tables import (
    AUTO,
    BEST,
    BMM,
    COMPARISONS,
    EVERY,
    PAPER,
    PERMUTED,
    Comparison,
    Rows,
    dtypes_of,
    products,
    times_of,
)
from .picture import new_figure, save

GENERIC_FIGURE, BMM_FIGURE = COMPARISONS[0], Comparison((BMM,), PERMUTED[1:])
"""The comparisons of Figures 12 and 13."""

LAYOUT_RATIOS = {AUTO: 2.0, BMM: 1.0}
"""The paper, Section 5.4: its kernel gains about 2 when the batch is last, the permuted product's time is the same."""

WHISKERS = (5, 95)


@dataclass(frozen=True)
class Speedup:
    """The ratio of one pattern at its size M N; `at_least` if the slower side was not timed."""

    size: float
    ratio: float
    at_least: bool


def speedups(rows: Rows, dtype: str, comparison: Comparison) -> list[Speedup]:
    """Return the ratios of a comparison by size, every contender in the faster of both layouts."""
    rows = products(rows)
    sizes = {row["key"].split()[2]: row["figures"]["size"] for row in rows}
    found = []
    for pattern, times in times_of(rows, dtype, BEST).items():
        for ratio in comparison.ratios([times]):
            found.append(Speedup(sizes[pattern], ratio, bool(comparison.bounded([times]))))
    return sorted(found, key=lambda one: (one.size, one.ratio))


def by_decade(points: Sequence[Speedup]) -> dict[int, list[float]]:
    """Return the ratios by power of ten of the size."""
    found: dict[int, list[float]] = {}
    for one in points:
        found.setdefault(math.floor(math.log10(one.size)), []).append(one.ratio)
    return found


def layout_ratios(rows: Rows, dtype: str) -> dict[str, list[float]]:
    """Return time batch-first over time batch-last by contender, of the patterns that were timed in both."""
    first, last = times_of(rows, dtype, "bsf"), times_of(rows, dtype, "bsl")
    found = {
        name: [first[key][name] / last[key][name] for key in first if name in first[key] and name in last.get(key, ())]
        for name in (AUTO, *EVERY)
    }
    return {name: ratios for name, ratios in found.items() if ratios}


def paper_median(dtype: str, comparison: Comparison) -> float | None:
    """Return the paper's median over the patterns that were won, in Table 2 or 9; for BMM over all other baselines."""
    known = PAPER.get((dtype, BEST))
    place = 0 if comparison == GENERIC_FIGURE else 1
    return None if known is None else known[1][place][1]


def size_panel(panel: Any, points: Sequence[Speedup], paper: float | None, colour: str = "tab:blue") -> None:
    """Draw a box for each decade of sizes, a dot for each pattern (hollow: at least), and the paper's median dashed."""
    for hollow in (False, True):
        some = [one for one in points if one.at_least == hollow]
        panel.scatter(
            [one.size for one in some],
            [one.ratio for one in some],
            s=14,
            facecolors="none" if hollow else colour,
            edgecolors=colour,
            linewidths=0.7,
        )
    decades = by_decade(points)
    if not decades:
        return
    panel.boxplot(
        list(decades.values()),
        positions=[10 ** (decade + 0.5) for decade in decades],
        widths=[0.6 * 10 ** (decade + 0.5) for decade in decades],
        whis=WHISKERS,
        showfliers=False,
        manage_ticks=False,
        medianprops={"color": "black"},
    )
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.axhline(1.0, color="0.3", linewidth=1)
    if paper is not None:
        panel.axhline(paper, color="0.3", linewidth=1, linestyle="--")


def layout_panel(panel: Any, ratios: Mapping[str, Sequence[float]], with_paper: bool) -> None:
    """Draw a box for each contender, and a diamond at the paper's median where it states one."""
    panel.boxplot(list(ratios.values()), whis=WHISKERS, showfliers=False, medianprops={"color": "black"})
    panel.set_xticks(range(1, len(ratios) + 1), list(ratios))
    panel.axhline(1.0, color="0.3", linewidth=1)
    stated = [(place, LAYOUT_RATIOS[name]) for place, name in enumerate(ratios, 1) if name in LAYOUT_RATIOS]
    if with_paper and stated:
        panel.plot(*zip(*stated, strict=True), "D", color="0.3", markersize=6, markerfacecolor="none")


def draw_figures(rows: Rows, path: Path) -> None:
    """Draw the three figures side by side, a line of them for each dtype of which both layouts were timed."""
    rows = products(rows)
    dtypes = [dtype for dtype in dtypes_of(rows) if layout_ratios(rows, dtype)]
    if not dtypes:
        return
    drawing, axes = new_figure(12, 4 * len(dtypes))
    axes.remove()
    for dtype, panels in zip(dtypes, drawing.subplots(len(dtypes), 3, squeeze=False), strict=True):
        for panel, comparison in zip(panels, (GENERIC_FIGURE, BMM_FIGURE), strict=False):
            size_panel(panel, speedups(rows, dtype, comparison), paper_median(dtype, comparison))
            panel.set_xlabel("M N")
            panel.set_title(f"{dtype}: {comparison}", fontsize=8)
        layout_panel(panels[2], layout_ratios(rows, dtype), dtype == "float32")
        panels[2].set_title(f"{dtype}: time batch-first / time batch-last", fontsize=8)
    save(drawing, path)

"""Figures 12 to 14 of the Kronecker-sparse paper from the rows of suite `ks` in float32 on a GPU.

Source: Gonon, Zheng, Carrivain, Le, "Fast Inference with Kronecker-Sparse Matrices" (ICML 2025), appendix E. As there,
boxes end at the quartiles and whiskers at the 5th and the 95th percentile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from ..bench.ks_tables import AUTO, BEST, BMM, COMPARISONS, EVERY, PAPER, PERMUTED, Comparison, products, times_of
from .canvas import COLOURS, Drawn, axes, drawn, rows_of, ticks

DTYPE = "float32"

GENERIC_FIGURE, BMM_FIGURE = COMPARISONS[0], Comparison((BMM,), PERMUTED[1:])
"""The comparisons of Figures 12 and 13."""

LAYOUT_RATIOS = {AUTO: 2.0, BMM: 1.0}
"""The paper, Section 5.4: its kernel gains about 2 when the batch is last, the permuted product's time is the same."""

WHISKERS = (5, 95)

NAMES = {AUTO: "ours"}
"""Contenders as axes name them."""


@dataclass(frozen=True)
class Speedup:
    """The ratio of one pattern at its size M N; `at_least` if the slower side was not timed."""

    size: float
    ratio: float
    at_least: bool


def speedups(comparison: Comparison, results: Path) -> list[Speedup]:
    """Return the ratios of a comparison by size, every contender in the faster of both layouts."""
    rows = products(list(rows_of(results, "ks-cuda").values()))
    sizes = {row["key"].split()[2]: row["figures"]["size"] for row in rows}
    found = [
        Speedup(sizes[pattern], ratio, bool(comparison.bounded([times])))
        for pattern, times in times_of(rows, DTYPE, BEST).items()
        for ratio in comparison.ratios([times])
    ]
    return sorted(found, key=lambda one: (one.size, one.ratio))


def by_decade(points: Sequence[Speedup]) -> dict[int, list[float]]:
    """Return the ratios by power of ten of the size, ascending."""
    found: dict[int, list[float]] = {}
    for one in sorted(points, key=lambda one: one.size):
        found.setdefault(math.floor(math.log10(one.size)), []).append(one.ratio)
    return found


def layout_ratios(results: Path) -> dict[str, list[float]]:
    """Return time batch-first over time batch-last by contender, of the patterns that were timed in both."""
    rows = list(rows_of(results, "ks-cuda").values())
    first, last = (times_of(rows, DTYPE, layout) for layout in ("bsf", "bsl"))
    found = {
        name: [first[key][name] / last[key][name] for key in first if name in first[key] and name in last.get(key, ())]
        for name in (AUTO, *EVERY)
    }
    return {name: ratios for name, ratios in found.items() if ratios}


def _draw_sizes(name: str, place: int, points: Sequence[Speedup]) -> Drawn:
    """A box for each decade of sizes, a dot for each pattern (hollow: at least), and the paper's median dashed: that of
    the patterns that were won, in Table 2, at this place of the comparisons; of BMM over all other baselines."""
    figure, panel = axes(name)
    paper = PAPER[DTYPE, BEST][1][place][1]
    assert paper is not None
    for hollow in (False, True):
        some = [one for one in points if one.at_least == hollow]
        style = {"facecolors": "none" if hollow else COLOURS[0], "edgecolors": COLOURS[0], "linewidths": 0.7, "s": 14}
        panel.scatter([one.size for one in some], [one.ratio for one in some], **style)
    decades = by_decade(points)
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
    panel.axhline(paper, color="0.3", linewidth=1, linestyle="--")
    ticks(panel.xaxis, (10.0**power for power in range(4, 11)), (f"1e{power}" for power in range(4, 11)))
    low, high = (end([paper, *(one.ratio for one in points)]) for end in (min, max))
    panel.set_ylim(0.8 * low, 1.3 * high)
    known = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
    ticks(panel.yaxis, (tick for tick in known if 0.8 * low <= tick <= 1.3 * high))
    medians = ", ".join(f"{median(ratios):.2g} at 1e{decade} ({len(ratios)})" for decade, ratios in decades.items())
    bounds = sum(one.at_least for one in points)
    hollow_dots = f" {bounds} ratios are lower bounds." if bounds else ""
    wins = f"{sum(one.ratio > 1 for one in points)} of {len(points)} above 1"
    return drawn(name, figure, wins=wins, medians=medians, bounds=hollow_dots)


draw_generic, draw_bmm = partial(_draw_sizes, "ks-generic", 0), partial(_draw_sizes, "ks-bmm", 1)


def draw_layouts(ratios: dict[str, list[float]]) -> Drawn:
    """A box for each contender, and a diamond at the paper's median where it states one."""
    figure, panel = axes("ks-layouts")
    panel.boxplot(list(ratios.values()), whis=WHISKERS, showfliers=False, medianprops={"color": "black"})
    panel.axhline(1.0, color="0.3", linewidth=1)
    stated = [(place, LAYOUT_RATIOS[name]) for place, name in enumerate(ratios, 1) if name in LAYOUT_RATIOS]
    panel.plot(*zip(*stated, strict=True), "D", color="0.3", markersize=6, markerfacecolor="none")
    panel.set_xticks(range(1, len(ratios) + 1), [NAMES.get(name, name) for name in ratios])
    words = ", ".join(f"{NAMES.get(name, name)} {median(found):.2f} ({len(found)})" for name, found in ratios.items())
    return drawn("ks-layouts", figure, medians=words, ours=LAYOUT_RATIOS[AUTO], bmm=LAYOUT_RATIOS[BMM])

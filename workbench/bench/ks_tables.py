"""The tables and figures of the Kronecker-sparse paper from the rows of suite "ks", the paper's own figures beside.

Source of the figures: Gonon, Zheng, Carrivain, Le, "Fast Inference with Kronecker-Sparse Matrices" (ICML 2025), on an
A100. KERNEL is its own kernel, "auto" what the planner chose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ...home import write_atomic
from .picture import new_figure, save

Rows = Sequence[Mapping[str, Any]]
Times = dict[str, float]
"""Milliseconds by contender."""

AUTO, BMM = "auto", "bmm"

PERMUTED, GENERIC = ("bmm", "einsum", "bsr"), ("csr", "dense")

AWARE, EVERY = ("auto", *PERMUTED), (*PERMUTED, *GENERIC)
"""The contenders that make use of the pattern, and all baselines."""

BEST = "best of both"


@dataclass(frozen=True)
class Comparison:
    """Return the share of patterns where the fastest of `mine` is faster than the fastest of `others`."""

    mine: tuple[str, ...]
    others: tuple[str, ...]

    def __str__(self) -> str:
        return " < ".join(f"min({', '.join(names)})" if len(names) > 1 else names[0] for names in self.sides)

    @property
    def sides(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.mine, self.others

    def ratios(self, times: Sequence[Times]) -> list[float]:
        """Time of the others over that of mine for every pattern in which both were measured."""
        found = []
        for one in times:
            mine, others = ([one[name] for name in names if name in one] for names in self.sides)
            if mine and others:
                found.append(min(others) / min(mine))
        return found


COMPARISONS = (Comparison(AWARE, GENERIC), Comparison((BMM,), EVERY[1:]), Comparison((AUTO,), EVERY))

PAPER: dict[tuple[str, str], tuple[str, tuple[tuple[float, float | None], ...]]] = {
    ("float32", BEST): ("Table 2", ((98.1, 6.5), (90.0, 1.36), (85.5, 1.39))),
    ("float32", "bsf"): ("Table 6", ((97.61, 18.50), (94.1, 1.44), (20.41, 1.26))),
    ("float32", "bsl"): ("Table 6", ((98.09, 6.53), (89.47, 1.66), (85.49, 1.39))),
    ("float16", BEST): ("Table 9", ((85.7, 8.14), (80.7, 1.52), (37.8, 1.51))),
    ("float16", "bsf"): ("Table 10", ((83.18, 6.31), (82.25, 1.54), (0.0, None))),
    ("float16", "bsl"): ("Table 10", ((85.34, 8.14), (79.48, 2.65), (41.78, 1.56))),
}
"""The paper's tables by dtype and layout: by comparison the win rate in percent and the median over the won ones."""

SPARSITY = (0.4999, 0.8749, 0.9583, 0.9792, 0.9896, 0.9948, 1.0)
"""Edges of the six bins of the paper's Table 5."""

BINS = (
    (86.0, 1.23, 0.76),
    (89.5, 1.30, 0.80),
    (81.5, 1.41, 0.80),
    (79.6, 1.38, 0.83),
    (93.1, 1.41, 0.82),
    (100.0, 1.84, 0.91),
)
"""Table 5, by bin: win rate in percent, median over the won ones, correlation of log speed-up and log h."""


def times_of(rows: Rows, dtype: str, layout: str) -> dict[str, Times]:
    """Return by pattern the times of all contenders in a layout; in BEST the minimum of both, if both were measured."""
    if layout == BEST:
        first, last = times_of(rows, dtype, "bsf"), times_of(rows, dtype, "bsl")
        both = {pattern: (first[pattern], last[pattern]) for pattern in first if pattern in last}
        return {
            pattern: {name: min(one[name], two[name]) for name in one if name in two}
            for pattern, (one, two) in both.items()
        }
    found = {}
    for row in rows:
        if row["refused"] is None and row["key"].split()[:2] == [layout, dtype]:
            found[row["key"].split()[2]] = dict(row["figures"]["ms"])
    return found


def tables(rows: Rows) -> Iterator[str]:
    """Markdown: win rates by dtype and layout, six bins of sparsity, the fit of speed-ups, shares of permutations."""
    figures = {row["key"].split()[2]: row["figures"] for row in rows if row["refused"] is None}
    for dtype in dict.fromkeys(row["key"].split()[1] for row in rows):
        yield f"## {dtype}"
        yield ""
        yield "| layout | comparison | patterns | won % | median, won | median, all | paper: won %, median, won |"
        yield "| --- | --- | --- | --- | --- | --- | --- |"
        for layout in (BEST, "bsf", "bsl"):
            times = list(times_of(rows, dtype, layout).values())
            label, theirs = PAPER.get((dtype, layout), ("", ((None, None),) * len(COMPARISONS)))
            for comparison, paper in zip(COMPARISONS, theirs, strict=True):
                if ratios := comparison.ratios(times):
                    beside = f"{label}: {_cell(paper[0])}, {_cell(paper[1])}" if label else ""
                    yield _line(layout, comparison, len(ratios), *won(ratios), median(ratios), beside)
        yield ""
        yield from _bins(times_of(rows, dtype, BEST), figures, dtype)
        yield from _fits(rows, dtype, figures)


def won(ratios: Sequence[float]) -> tuple[float, float | None]:
    """The part of ratios above 1 in percent, and their median (None: there is none)."""
    above = [ratio for ratio in ratios if ratio > 1]
    return 100 * len(above) / len(ratios), median(above) if above else None


def fit(speedups: Sequence[float], density: Sequence[float], h: Sequence[float]) -> tuple[float, float, float, float]:
    """Least squares of log speed-up = u + v log density + w log h: u, v, w and R2 (0 where all speed-ups are equal)."""
    known = np.stack([np.ones(len(h)), np.log(density), np.log(h)], axis=1)
    wanted = np.log(speedups)
    found = np.linalg.lstsq(known, wanted, rcond=None)[0]
    spread = float(((wanted - wanted.mean()) ** 2).sum())
    residual = float(((wanted - known @ found) ** 2).sum())
    u, v, w = map(float, found)
    return u, v, w, 1 - residual / spread if spread else 0.0


def _bins(times: dict[str, Times], figures: Mapping[str, Any], dtype: str) -> Iterator[str]:
    yield "| sparsity | patterns | won % | median, won | correlation with h | paper, Table 5 (float32) |"
    yield "| --- | --- | --- | --- | --- | --- |"
    against = Comparison((AUTO,), PERMUTED)
    for (low, high), paper in zip(pairwise(SPARSITY), BINS, strict=True):
        inside = {key: one for key, one in times.items() if low < 1 - figures[key]["density"] <= high}
        known = [key for key in inside if against.ratios([inside[key]])]
        if not known:
            continue
        ratios = against.ratios([inside[key] for key in known])
        logs = np.log(ratios), np.log([figures[key]["h"] for key in known])
        varied = len(known) > 2 and min(np.ptp(logs[0]), np.ptp(logs[1])) > 0
        beside = ", ".join(map(_cell, paper)) if dtype == "float32" else ""
        correlation = float(np.corrcoef(*logs)[0, 1]) if varied else None
        yield _line(f"{low:.2%} to {high:.2%}", len(known), *won(ratios), correlation, beside)
    yield ""


def _fits(rows: Rows, dtype: str, figures: Mapping[str, Any]) -> Iterator[str]:
    for layout in ("bsf", "bsl"):
        found = times_of(rows, dtype, layout)
        known = [key for key in found if COMPARISONS[2].ratios([found[key]])]
        if len(known) > 3:
            speedups = COMPARISONS[2].ratios([found[key] for key in known])
            u, v, w, r2 = fit(speedups, *([figures[key][name] for key in known] for name in ("density", "h")))
            yield f"{layout}: log speed-up = {u:.3f} + {v:.3f} log density + {w:.3f} log h, R2 {r2:.2f}"
        of = [row["figures"] for row in rows if row["key"].split()[:2] == [layout, dtype] and row["refused"] is None]
        shares = [one["permutations"] for one in of if one.get("permutations") is not None]
        if shares:
            low, middle, high = np.quantile(shares, (0.1, 0.5, 0.9))
            spent = f"{low:.0%}, {middle:.0%}, {high:.0%}"
            yield f"{layout}: bmm spends {spent} of its time in permutations (q10, q50, q90)"
    yield ""


def _line(*cells: object) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def write_tables(rows: Rows, path: Path) -> None:
    """Write the tables to a Markdown file, atomically."""
    write_atomic(path, "\n".join(["# Suite ks", "", *tables(rows)]) + "\n")


def draw_figures(rows: Rows, path: Path) -> None:
    """Draw the paper's Figures 12 to 14: speed-ups by the size of K, and batch-first over batch-last times."""
    dtype = rows[0]["key"].split()[1]
    best = times_of(rows, dtype, BEST)
    first, last = times_of(rows, dtype, "bsf"), times_of(rows, dtype, "bsl")
    if not best:
        return
    sizes = {row["key"].split()[2]: row["figures"]["size"] for row in rows if row["refused"] is None}
    drawing, axes = new_figure(12, 4)
    axes.remove()
    one, two, three = drawing.subplots(1, 3)
    shown = (one, COMPARISONS[0]), (two, Comparison((BMM,), PERMUTED[1:]))
    for part, comparison in shown:
        known = [key for key in best if comparison.ratios([best[key]])]
        part.scatter([sizes[key] for key in known], comparison.ratios([best[key] for key in known]), s=8)
        part.set_xscale("log")
        part.set_yscale("log")
        part.axhline(1.0, color="0.3", linewidth=1)
        part.set_xlabel("M N")
        part.set_title(str(comparison), fontsize=8)
    names = [name for name in (AUTO, *EVERY) if any(name in one for one in best.values())]
    spread = [[first[key][name] / last[key][name] for key in best if name in best[key]] for name in names]
    three.boxplot(spread)
    three.set_xticks(range(1, len(names) + 1), names)
    three.set_title("time batch-first / time batch-last", fontsize=8)
    save(drawing, path)

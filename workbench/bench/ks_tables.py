"""The tables of the Kronecker-sparse paper from the rows of suite "ks", the paper's own figures beside.

Source of the figures: Gonon, Zheng, Carrivain, Le, "Fast Inference with Kronecker-Sparse Matrices" (ICML 2025), on an
A100. KERNEL is its own kernel, "auto" what the planner chose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from ..output import cell, markdown_table
from .case import Rows
from .table import rows as published

Times = dict[str, float]
"""Milliseconds by contender."""

AUTO, BMM = "auto", "bmm"

PERMUTED, GENERIC = ("bmm", "einsum", "bsr"), ("csr", "dense")

AWARE, EVERY = ("auto", *PERMUTED), (*PERMUTED, *GENERIC)
"""The contenders that make use of the pattern, and all baselines."""

HOPELESS = {"cuda": 8.0, "cpu": 3.0}
"""A baseline that is predicted to take so many times as long as the choice is not timed."""

UNTIMED = "untimed"
"""Stands among the times for `csr` or `dense` if they were not timed: the least that these can take."""

BEST = "best of both"


@dataclass(frozen=True)
class Comparison:
    """The fastest of `mine` against the fastest of `others`. Where one of these is UNTIMED, ratios are lower bounds."""

    mine: tuple[str, ...]
    others: tuple[str, ...]

    def __str__(self) -> str:
        shown = ([name for name in names if name != UNTIMED] for names in self.sides)
        return " < ".join(f"min({', '.join(names)})" if len(names) > 1 else names[0] for names in shown)

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

    def bounded(self, times: Sequence[Times]) -> int:
        """Return for how many patterns the ratio is a lower bound: none of the others was timed as fast as UNTIMED."""
        known = [[one[name] for name in self.others if name in one] for one in times]
        if UNTIMED not in self.others:
            return 0
        return sum(UNTIMED in one and one[UNTIMED] <= min(others) for one, others in zip(times, known, strict=True))


COMPARISONS = (Comparison(AWARE, (*GENERIC, UNTIMED)), Comparison((BMM,), EVERY[1:]), Comparison((AUTO,), EVERY))

AGAINST_AWARE = Comparison((AUTO,), PERMUTED)
"""The paper's Table 5 and its regression."""

PAPER = {
    (one.dtype, one.layout): (one.label, tuple(zip(one[3::2], one[4::2], strict=True))) for one in published("ks_paper")
}
"""The paper's tables by dtype and layout: by comparison the win rate in percent and the median over the won ones."""

SPARSITY = (0.4999, 0.8749, 0.9583, 0.9792, 0.9896, 0.9948, 1.0)
"""Edges of the six bins of the paper's Table 5."""

BINS = published("ks_bins")
"""Table 5, by bin: patterns, win rate in percent, median over the won ones, correlation of log speed-up and log h."""

REGRESSION = "1.69 - 0.031 log density + 0.325 log h, R2 0.697"
"""Section 5.2, float32, the minimum of both layouts, patterns with zeros."""

PERMUTATIONS = {"float32": "10% to 50%", "float16": "40% to 80%"}
"""Appendix E.9: the part of the permuted product's time that its permutations take."""


def products(rows: Rows) -> list[Mapping[str, Any]]:
    """Return the rows of timed products: those that measure gradients or energy, or were refused, are left out."""
    return [row for row in rows if row["refused"] is None and "ms" in row["figures"] and len(row["key"].split()) == 3]


def by_dtype_and_layout(rows: Rows) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Return the figures of rows "KIND LAYOUT DTYPE PATTERN" by dtype and layout; refused rows have none."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        _, layout, dtype, *_ = row["key"].split()
        figures = [row["figures"]] if row["refused"] is None else []
        found.setdefault((dtype, layout), []).extend(figures)
    return found


def times_of(rows: Rows, dtype: str, layout: str) -> dict[str, Times]:
    """Return by pattern the times of all contenders in a layout; in BEST the minimum of both, if both were measured."""
    if layout == BEST:
        first, last = times_of(rows, dtype, "bsf"), times_of(rows, dtype, "bsl")
        both = {pattern: (first[pattern], last[pattern]) for pattern in first if pattern in last}
        return {pattern: _least(one, two) for pattern, (one, two) in both.items()}
    found = {}
    for row in products(rows):
        if row["key"].split()[:2] == [layout, dtype]:
            found[row["key"].split()[2]] = _with_bound(row)
    return found


def _with_bound(row: Mapping[str, Any]) -> Times:
    """Return the times of a row, with the least that untimed sparse formats and dense matrices can take."""
    figures = row["figures"]
    predicted = figures.get("predicted_ms")
    if predicted is None or all(name in figures["ms"] for name in GENERIC):
        return dict(figures["ms"])
    return {**figures["ms"], UNTIMED: HOPELESS[row["options"]["device"]] * predicted}


def _least(one: Times, two: Times) -> Times:
    """Return the minimum of both layouts; a bound of one layout is one of the minimum."""
    found = {name: min(one[name], two[name]) for name in one if name in two}
    bounds = [times[UNTIMED] for times in (one, two) if UNTIMED in times]
    return {**found, UNTIMED: min(bounds)} if bounds else found


def tables(rows: Rows) -> Iterator[str]:
    """Markdown: win rates by dtype and layout, six bins of sparsity, the fit of speed-ups, shares of permutations."""
    rows = products(rows)
    figures = {row["key"].split()[2]: row["figures"] for row in rows}
    for dtype in dict.fromkeys(row["key"].split()[1] for row in rows):
        yield f"### {dtype}"
        yield ""
        columns = ("layout", "comparison", "patterns", "won %", "median, won", "median, all")
        lines, bounded = [], 0
        for layout in (BEST, "bsf", "bsl"):
            times = list(times_of(rows, dtype, layout).values())
            label, theirs = PAPER.get((dtype, layout), ("", ((None, None),) * len(COMPARISONS)))
            for comparison, paper in zip(COMPARISONS, theirs, strict=True):
                if ratios := comparison.ratios(times):
                    beside = f"{label}: {cell(paper[0])}, {cell(paper[1])}" if label else ""
                    bounds = comparison.bounded(times)
                    bounded += bounds
                    share, of_won = won(ratios)
                    medians = (_bounded(value, bounds) for value in (of_won, median(ratios)))
                    lines.append((layout, comparison, len(ratios), share, *medians, beside))
        yield from _table((*columns, "paper: won %, median, won"), lines)
        if bounded:
            yield (
                "At least (>=): csr and dense were not timed where they were predicted to take "
                f"{HOPELESS['cuda']:g} times (on a processor {HOPELESS['cpu']:g} times) as long as auto."
            )
            yield ""
        yield from _bins(times_of(rows, dtype, BEST), figures, dtype)
        yield from _fits(rows, dtype, figures)


def won(ratios: Sequence[float]) -> tuple[float, float | None]:
    """The part of ratios above 1 in percent, and their median (None: there is none)."""
    above = [ratio for ratio in ratios if ratio > 1]
    return 100 * len(above) / len(ratios), median(above) if above else None


def fit(speedups: Sequence[float], density: Sequence[float], h: Sequence[float]) -> tuple[float, float, float, float]:
    """Least squares of log speed-up = u + v log density + w log h: u, v, w and the adjusted R2.

    R2 is 0 where all speed-ups are equal.
    """
    known = np.stack([np.ones(len(h)), np.log(density), np.log(h)], axis=1)
    wanted = np.log(speedups)
    found = np.linalg.lstsq(known, wanted, rcond=None)[0]
    spread = float(((wanted - wanted.mean()) ** 2).sum()) / (len(h) - 1)
    residual = float(((wanted - known @ found) ** 2).sum()) / (len(h) - known.shape[1])
    u, v, w = map(float, found)
    return u, v, w, 1 - residual / spread if spread else 0.0


def _bins(times: dict[str, Times], figures: Mapping[str, Any], dtype: str) -> Iterator[str]:
    columns = ("sparsity", "patterns", "won %", "median, won", "correlation with h", "paper, Table 5 (float32)")
    lines = []
    for (low, high), paper in zip(pairwise(SPARSITY), BINS, strict=True):
        inside = {key: one for key, one in times.items() if low < 1 - figures[key]["density"] <= high}
        known = [key for key in inside if AGAINST_AWARE.ratios([inside[key]])]
        if not known:
            continue
        ratios = AGAINST_AWARE.ratios([inside[key] for key in known])
        logs = np.log(ratios), np.log([figures[key]["h"] for key in known])
        varied = len(known) > 2 and min(np.ptp(logs[0]), np.ptp(logs[1])) > 0
        beside = ", ".join(map(cell, paper)) if dtype == "float32" else ""
        correlation = float(np.corrcoef(*logs)[0, 1]) if varied else None
        lines.append((f"{low:.2%} to {high:.2%}", len(known), *won(ratios), correlation, beside))
    yield from _table(columns, lines)


def _table(columns: Sequence[str], lines: Iterable[Iterable[object]]) -> Iterator[str]:
    yield from (markdown_table(columns, (map(cell, line) for line in lines)), "")


def _fits(rows: Rows, dtype: str, figures: Mapping[str, Any]) -> Iterator[str]:
    """List the fits of log speed-ups over PERMUTED, of patterns with zeros, and the shares of permutations."""
    for layout in (BEST, "bsf", "bsl"):
        found = times_of(rows, dtype, layout)
        known = [key for key in found if figures[key]["density"] < 1 and AGAINST_AWARE.ratios([found[key]])]
        if len(known) > 3:
            speedups = AGAINST_AWARE.ratios([found[key] for key in known])
            u, v, w, r2 = fit(speedups, *([figures[key][name] for key in known] for name in ("density", "h")))
            beside = f" (paper: {REGRESSION})" if (dtype, layout) == ("float32", BEST) else ""
            law = f"{u:.3f} {v:+.3f} log density {w:+.3f} log h, R2 {r2:.2f}"
            yield f"- {layout}: log speed-up over min({', '.join(PERMUTED)}) = {law}, {len(known)} patterns{beside}"
        of = [row["figures"] for row in rows if row["key"].split()[:2] == [layout, dtype]]
        shares = [one["permutations"] for one in of if one.get("permutations") is not None]
        if shares:
            low, middle, high = np.quantile(shares, (0.1, 0.5, 0.9))
            spent = f"{low:.0%}, {middle:.0%}, {high:.0%}"
            beside = f" (paper: {PERMUTATIONS[dtype]})" if dtype in PERMUTATIONS else ""
            yield f"- {layout}: bmm spends {spent} of its time in permutations (q10, q50, q90){beside}"
    yield ""


def _bounded(value: float | None, bounds: int) -> str | None:
    return None if value is None else f"{'>= ' if bounds else ''}{cell(value)}"

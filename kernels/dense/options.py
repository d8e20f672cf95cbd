"""Every way that `auto` considers for a request: chains of levels, with their predicted cost and memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..dtypes import dtype_of
from ..planning.profile import Profile
from ..request import Request
from .fronts import Ladder, smallest
from .model import Row, combine_rows, gemm_row
from .pool import Choices

KEPT = 12
"""Chains of a depth and way that are listed."""

LEAN = ("loop", "depth-first")
"""The ways of little memory: slower than the others wherever these fit."""

LEAST_BLOCK = 96
"""Smallest side of a block: below it products are far from their best rate (measured)."""


@dataclass(frozen=True)
class Option:
    """A chain of levels, outermost first (none: the plain product), run by a strategy."""

    chain: tuple[int, ...]
    strategy: str
    seconds: float
    workspace: int

    def label(self, choices: Choices) -> str:
        """The chain in words."""
        return " * ".join(choices.entries[i].label for i in self.chain) or "GEMM"


def options(request: Request, costs: Ladder) -> list[Option]:
    """The plain product and the best chains of every depth and way within the limits, fastest first.

    Seconds are NaN where nothing was measured. What an option may err at least is held against
    `max_error` here; the exact bound of its program is the planner's to check. The ways of little
    memory are there only where the request limits it.
    """
    many, k = math.prod(request.batch), request.k
    most = request.max_workspace
    found = [Option((), "gemm", costs.plain, 0)]
    for rung in costs.rungs:
        front = rung.front
        bm, bk, bn = front.sizes
        fit = np.minimum(np.minimum(bm, bk), bn) >= LEAST_BLOCK
        if request.max_error is not None:
            fit &= dtype_of(request.dtype).unit * front.growth * bk**2 / max(k, 1) <= request.max_error
        for name, seconds, workspace in rung.ways:
            if most is None and name in LEAN:
                continue
            allowed = fit if most is None else fit & (workspace <= most)
            ranked = smallest(np.where(allowed, seconds, np.inf), KEPT)
            for i in ranked[allowed[ranked]].tolist():
                found.append(Option(front.chain(i), name, many * float(seconds[i]), int(workspace[i])))
    return sorted(found, key=lambda option: (math.isnan(option.seconds), option.seconds, len(option.chain)))


def chain_rows(option: Option, request: Request, profile: Profile, choices: Choices) -> list[tuple[str, Row]]:
    """The rows of Table II for every level of an option, outermost first, and its products at the bottom."""
    m, k, n = request.shape
    count = float(math.prod(request.batch))
    mode = "tasks" if option.strategy == "tasks" else "whole"
    rows: list[tuple[str, Row]] = []
    for i in option.chain:
        figures = choices.figures[i]
        for row in combine_rows(profile, request.dtype, figures, m, k, n):
            rows.append(
                (choices.entries[i].label, Row(row.stage, count * row.flops, count * row.bytes, count * row.seconds))
            )
        m, k, n = (int(size) for size in figures.block(m, k, n))
        count *= float(figures.rank)
    rows.append((f"{count:.0f} of {m}x{k}x{n}", gemm_row(profile, request.dtype, m, k, n, mode, count)))
    return rows

"""Every way that `auto` considers for a request: chains of levels, with their predicted cost and memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import dtype_of
from ..profile import Profile
from ..request import Request
from .candidates import Choices
from .model import Figures, Row, combine_rows, gemm_row, gemm_seconds

BEAM = 12
"""Chains that are extended by another level."""

MAX_DEPTH = 3

LEVEL_SECONDS, CALL_SECONDS = 150e-6, 5e-6
"""What a level and each of its products take beside their arithmetic and traffic, in Python (measured)."""

KEPT = 12
"""Chains of a depth and way that are listed."""

BY_ALL = 0.8
"""What sums below the first level take beyond the model's seconds, as a part of these, with several threads.

Made by all threads together they are short, and everybody waits for the last. Measured, float32, two
threads, 4096 and 6144x3072x3072.
"""

FETCHED, FETCHED_EACH = 1.0, 0.5
"""How much of the traffic of the products of a scheme adds to their time, by all threads and as tasks.

The rates of products are measured on operands that the caches hold, as one product after the other
finds them; those of a scheme come from the sums, through memory. As tasks half of it hides behind
the products of other threads. Measured, float32: four levels on 4096, one thread, took 813 ms, and
722 ms by the rates alone; 429 ms and 425 ms on two.
"""

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


@dataclass(frozen=True)
class _Front:
    """Chains of one depth as arrays: what their levels cost so far, and the blocks at the bottom."""

    chains: np.ndarray
    spent: Any
    count: Any
    sizes: tuple[Any, Any, Any]
    growth: Any
    batch: Any
    tasks: Any
    looped: Any
    deep: Any
    spent_loop: Any
    spent_deep: Any
    below: Any

    def at(self, places: Any) -> _Front:
        """Some of the chains."""
        m, k, n = (size[places] for size in self.sizes)
        first = self.chains[places], self.spent[places], self.count[places], (m, k, n)
        rest = (
            self.growth,
            self.batch,
            self.tasks,
            self.looped,
            self.deep,
            self.spent_loop,
            self.spent_deep,
            self.below,
        )
        return _Front(*first, *(values[places] for values in rest))


def options(request: Request, profile: Profile, choices: Choices, threads: int, spin: float = 0.0) -> list[Option]:
    """The plain product and the best chains of every depth and way within the limits, fastest first.

    Seconds are NaN where nothing was measured. What an option may err at least is held against
    `max_error` here; the exact bound of its program is the planner's to check.

    The ways of little memory (loop, depth-first) are there only where the request limits it: they
    are slower than the others wherever these fit. `spin` is what a queue of tasks loses to idle
    threads of the library, in seconds.
    """
    m, k, n = request.shape
    many = math.prod(request.batch)
    plain = gemm_row(profile, request.dtype, m, k, n, "whole", many)
    found = [Option((), "gemm", float(plain.seconds), 0)]
    limited = request.max_workspace is not None
    front = _start(request)
    for depth in range(1, MAX_DEPTH + 1):
        front = _extended(front, choices.figures, request.dtype, profile, threads)
        bm, bk, bn = front.sizes
        least = np.minimum(np.minimum(bm, bk), bn)
        whole, tasks = gemm_seconds(profile, request.dtype, bm, bk, bn, front.count)
        moved = dtype_of(request.dtype).numpy.itemsize * front.count * (bm * bk + bk * bn + bm * bn)
        fetched = moved / (profile.bandwidth or profile.combine_rate or np.nan)
        whole, tasks = whole + FETCHED * fetched, tasks + FETCHED_EACH * fetched
        best = front.spent + whole + (BY_ALL * front.below if threads > 1 else 0)
        ways = [("batch", best, front.batch)]
        if threads > 1:
            # What does not go round is worked by all threads together.
            outer = choices.figures.rank[front.chains[:, 0]]
            rest = outer % threads / outer
            best = front.spent + (1 - rest) * tasks + rest * (whole + BY_ALL * front.below)
            ways.append(("tasks", best + spin, front.tasks))
        if limited:
            ways.append(("loop", front.spent_loop + whole, front.looped))
            if depth > 1:
                ways.append(("depth-first", front.spent_deep + whole, front.deep))
        fit = least >= LEAST_BLOCK
        if request.max_error is not None:
            fit &= dtype_of(request.dtype).unit * front.growth * bk**2 / max(k, 1) <= request.max_error
        for name, seconds, workspace in ways:
            allowed = fit & (workspace <= request.max_workspace) if limited else fit
            ranked = np.argsort(np.where(allowed, seconds, np.inf), kind="stable")[:KEPT]
            for i in ranked[allowed[ranked]]:
                chain = tuple(front.chains[i].tolist())
                found.append(Option(chain, name, many * float(seconds[i]), int(workspace[i])))
        if depth < MAX_DEPTH:
            front = front.at(np.argsort(best, kind="stable")[:BEAM])
    return sorted(found, key=lambda option: (math.isnan(option.seconds), option.seconds, len(option.chain)))


def _start(request: Request) -> _Front:
    """The chain of no level."""
    one = np.ones(1)
    return _Front(
        np.zeros((1, 0), dtype=np.int64),
        0 * one,
        one,
        tuple(size * one for size in request.shape),  # type: ignore[arg-type]
        one,
        *([0 * one] * 7),
    )


def _extended(front: _Front, figures: Figures, dtype: str, profile: Profile, threads: int) -> _Front:
    """Every chain with every scheme below it."""
    item = dtype_of(dtype).numpy.itemsize
    sizes = tuple(size[:, None] for size in front.sizes)
    rows = combine_rows(profile, dtype, figures, *sizes)
    sums = front.count[:, None] * sum(row.seconds for row in rows)
    level = sums + front.count[:, None] * (LEVEL_SECONDS + CALL_SECONDS * figures.rank)
    bm, bk, bn = figures.block(*sizes)
    left, right, product = bm * bk, bk * bn, bm * bn
    own = item * (figures.made[0] * left + figures.made[1] * right + figures.rank * product)
    buffers = item * (left + right + product)
    moving = profile.bandwidth or profile.combine_rate or np.nan
    # Sums one at a time read every term anew; a product is read for, and added into, every block it feeds.
    nu, nv, nw = figures.nnz
    moved = (nu + figures.rank) * left + (nv + figures.rank) * right + (figures.rank + 2 * nw) * product
    looped = front.count[:, None] * item * moved / moving
    depth = front.chains.shape[1]
    scale = threads if depth else 1
    entries = len(figures.rank)
    chains = np.concatenate(
        [np.repeat(front.chains, entries, axis=0), np.tile(np.arange(entries), len(front.chains))[:, None]], axis=1
    )

    def flat(values: Any) -> Any:
        return np.broadcast_to(values, own.shape).ravel()

    return _Front(
        chains,
        flat(front.spent[:, None] + level),
        flat(front.count[:, None] * figures.rank),
        (flat(bm), flat(bk), flat(bn)),
        flat(front.growth[:, None] * figures.growth),
        flat(front.batch[:, None] + own),
        flat(front.tasks[:, None] + scale * own),
        flat(front.looped[:, None] + (own if depth else buffers)),
        flat(front.deep[:, None] + buffers),
        flat(front.spent_loop[:, None] + (level if depth else looped)),
        flat(front.spent_deep[:, None] + looped),
        flat(front.below[:, None] + (sums if depth else 0 * sums)),
    )


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

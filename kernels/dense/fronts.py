"""Chains of levels, costed together as arrays: every chain of a depth that extends a good one of the depth before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..dtypes import dtype_of
from ..planning.profile import Profile
from ..request import Request
from .model import Figures, combine_rows, gemm_row, gemm_seconds
from .pool import Choices

BEAM = 12
"""Chains that are extended by another level."""

MAX_DEPTH = 3

LEVEL_SECONDS, CALL_SECONDS = 150e-6, 5e-6
"""What a level and each of its products take beside their arithmetic and traffic, in Python (measured)."""

BY_ALL = 0.8
"""What sums below the first level take beyond the model's seconds, as a part of these, with several threads.

Made by all threads together they are short, and everybody waits for the last. Measured, float32, two
threads, 4096 and 6144x3072x3072.
"""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Front:
    """Chains of one depth as arrays: what their levels cost so far, and the blocks at the bottom.

    Chain i is one of `heads` with one of the `entries` choices below it; without entries, a head.
    `outer` is the rank of the first level. `batch` to `deep` are the workspaces of the ways to run levels.
    """

    heads: tuple[tuple[int, ...], ...]
    entries: int
    outer: Array
    spent: Array
    count: Array
    sizes: tuple[Array, Array, Array]
    growth: Array
    batch: Array
    tasks: Array
    looped: Array
    deep: Array
    spent_loop: Array
    spent_deep: Array
    below: Array

    def chain(self, i: int) -> tuple[int, ...]:
        """The choices of chain i, outermost first."""
        return (*self.heads[i // self.entries], i % self.entries) if self.entries else self.heads[i]

    def at(self, places: Array) -> Front:
        """Some of the chains."""
        m, k, n = (size[places] for size in self.sizes)
        return Front(
            tuple(self.chain(i) for i in places.tolist()),
            0,
            self.outer[places],
            self.spent[places],
            self.count[places],
            (m, k, n),
            self.growth[places],
            self.batch[places],
            self.tasks[places],
            self.looped[places],
            self.deep[places],
            self.spent_loop[places],
            self.spent_deep[places],
            self.below[places],
        )


@dataclass(frozen=True)
class Rung:
    """The chains of one depth, and for every way to run them seconds and bytes of workspace."""

    front: Front
    ways: tuple[tuple[str, Array, Array], ...]


@dataclass(frozen=True)
class Ladder:
    """Seconds of the plain product, and the chains of every depth. Limits of a request have no part in it."""

    plain: float
    rungs: Sequence[Rung]


def ladder(request: Request, profile: Profile, choices: Choices, threads: int, spin: float = 0.0) -> Ladder:
    """What everything costs on one matrix of a request; NaN where nothing was measured.

    `spin` is what a queue of tasks loses to idle threads of the library, in seconds.
    """
    plain = gemm_row(profile, request.dtype, *request.shape, "whole", math.prod(request.batch))
    front, rungs = _start(request), []
    for depth in range(1, MAX_DEPTH + 1):
        front = _extended(front, choices.figures, request.dtype, profile, threads)
        bm, bk, bn = front.sizes
        whole, tasks = gemm_seconds(profile, request.dtype, bm, bk, bn, front.count)
        best = front.spent + whole + (BY_ALL * front.below if threads > 1 else 0)
        ways = [("batch", best, front.batch)]
        if threads > 1:
            # What does not go round is worked by all threads together.
            rest = front.outer % threads / front.outer
            best = front.spent + (1 - rest) * tasks + rest * (whole + BY_ALL * front.below)
            ways.append(("tasks", best + spin, front.tasks))
        ways.append(("loop", front.spent_loop + whole, front.looped))
        if depth > 1:
            ways.append(("depth-first", front.spent_deep + whole, front.deep))
        rungs.append(Rung(front, tuple(ways)))
        if depth < MAX_DEPTH:
            front = front.at(smallest(best, BEAM))
    return Ladder(float(plain.seconds), rungs)


def smallest(values: Array, count: int) -> Array:
    """The places of the least values, least first, of equal ones the first; NaN counts as the largest."""
    if len(values) > count:
        limit = np.partition(values, count - 1)[count - 1]
        places = np.flatnonzero(~(values > limit))
    else:
        places = np.arange(len(values))
    return places[np.argsort(values[places], kind="stable")[:count]]


def _start(request: Request) -> Front:
    """The chain of no level."""
    one, none = np.ones(1), np.zeros(1)
    m, k, n = (size * one for size in request.shape)
    return Front(((),), 0, one, none, one, (m, k, n), one, *[none] * 7)


def _extended(front: Front, figures: Figures, dtype: str, profile: Profile, threads: int) -> Front:
    """Every chain with every scheme below it."""
    item = dtype_of(dtype).numpy.itemsize
    m, k, n = (size[:, None] for size in front.sizes)
    count = front.count[:, None]
    rows = combine_rows(profile, dtype, figures, m, k, n)
    sums = count * sum(row.seconds for row in rows)
    level = sums + count * (LEVEL_SECONDS + CALL_SECONDS * figures.rank)
    bm, bk, bn = figures.block(m, k, n)
    left, right, product = bm * bk, bk * bn, bm * bn
    own = item * (figures.made[0] * left + figures.made[1] * right + figures.rank * product)
    buffers = item * (left + right + product)
    moving = profile.bandwidth or profile.combine_rate or np.nan
    # Sums one at a time read every term anew; a product is read for, and added into, every block it feeds.
    nu, nv, nw = figures.nnz
    moved = (nu + figures.rank) * left + (nv + figures.rank) * right + (figures.rank + 2 * nw) * product
    looped = count * item * moved / moving
    first = not front.heads[0]
    entries = len(figures.rank)
    return Front(
        front.heads,
        entries,
        figures.rank if first else np.repeat(front.outer, entries),
        (front.spent[:, None] + level).ravel(),
        (count * figures.rank).ravel(),
        (bm.ravel(), bk.ravel(), bn.ravel()),
        (front.growth[:, None] * figures.growth).ravel(),
        (front.batch[:, None] + own).ravel(),
        (front.tasks[:, None] + (own if first else threads * own)).ravel(),
        (front.looped[:, None] + (buffers if first else own)).ravel(),
        (front.deep[:, None] + buffers).ravel(),
        (front.spent_loop[:, None] + (looped if first else level)).ravel(),
        (front.spent_deep[:, None] + looped).ravel(),
        (front.below[:, None] + (0 * sums if first else sums)).ravel(),
    )

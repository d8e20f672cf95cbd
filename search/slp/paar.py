"""Sharing of pairs among sums, compiled: randomised greedy choice of the pairs to compute once.

A matrix (rows, columns) of small integers represents sums of variables. A step selects two columns i < j
and a ratio p : q, adds a new variable p i + q j, and substitutes it for every multiple of that pair.
When no pair occurs twice, the additions are the new variables plus the additions left in the rows.

Source of greedy-potential: fmm_add_reduction's description of looking one step ahead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...jit import njit
from ..terms.bits import SEARCH, compiled, next_draw
from ..terms.words import Words

Matrix = npt.NDArray[np.int8]
Steps = npt.NDArray[np.int32]
Table = npt.NDArray[np.int16]
Counts = npt.NDArray[np.int16]


@compiled
def below(rng: Words, limit: int) -> int:
    """Return a random number in [0, limit)."""
    rng[0] = next_draw(rng[0])
    return np.int64((rng[0] >> np.uint64(33)) % np.uint64(limit))  # type: ignore[return-value]  # compiled, it is one


class Sharing(NamedTuple):
    """A matrix whose pairs are shared, and its working memory; the arrays are changed in place.

    Attributes:
        m: (rows, capacity) coefficients of the variables so far.
        table: number of the ratio of every two coefficients.
        pairs: (ratios, 2) the coprime pair p > 0, q of every number.
        counts: (capacity, capacity, ratios) rows that have each pair.
        places: (capacity,) scratch.
    """

    m: Matrix
    table: Table
    pairs: Steps
    counts: Counts
    places: Steps


@compiled
def count_row(s: Sharing, r: int, used: int, change: int) -> int:
    """Add or remove the pairs of a row in `counts`; return the change of the number of repeated pairs."""
    m, filled = s.m, 0
    for c in range(used):
        if m[r, c] != 0:
            s.places[filled] = c
            filled += 1
    gain, middle = 0, len(s.table) // 2
    for a in range(filled):
        i = s.places[a]
        for b in range(a + 1, filled):
            j = s.places[b]
            ratio = s.table[m[r, i] + middle, m[r, j] + middle]
            before = s.counts[i, j, ratio]
            s.counts[i, j, ratio] = before + change
            if change > 0:
                gain += before >= 1
            else:
                gain -= before >= 2
    return gain


@compiled
def take(s: Sharing, i: int, j: int, ratio: int, new: int) -> int:
    """Substitute column `new` for a pair; return the change of the number of repeated pairs."""
    m, gain, middle = s.m, 0, len(s.table) // 2
    for r in range(len(m)):
        if m[r, i] != 0 and m[r, j] != 0 and s.table[m[r, i] + middle, m[r, j] + middle] == ratio:
            gain += count_row(s, r, new + 1, -1)
            m[r, new] = m[r, i] // s.pairs[ratio, 0]
            m[r, i] = 0
            m[r, j] = 0
            gain += count_row(s, r, new + 1, 1)
    return gain


@compiled
def give_back(s: Sharing, i: int, j: int, ratio: int, new: int) -> None:
    """Invert `take`."""
    m = s.m
    for r in range(len(m)):
        content = m[r, new]
        if content != 0:
            count_row(s, r, new + 1, -1)
            m[r, i] = content * s.pairs[ratio, 0]
            m[r, j] = content * s.pairs[ratio, 1]
            m[r, new] = 0
            count_row(s, r, new + 1, 1)


@compiled
def candidates(counts: Counts, used: int, ratios: int, slack: int, width: int, chosen: Steps, rng: Words) -> int:
    """Sample up to `width` pairs with counts within `slack` of the largest; return their number, 0 if none repeats."""
    best = 0
    for i in range(used):
        for j in range(i + 1, used):
            for ratio in range(ratios):
                if counts[i, j, ratio] > best:
                    best = counts[i, j, ratio]
    if best < 2:
        return 0
    least = max(2, best - slack)
    met = 0
    for i in range(used):
        for j in range(i + 1, used):
            for ratio in range(ratios):
                if counts[i, j, ratio] >= least:
                    place = met if met < width else below(rng, met + 1)
                    if place < width:
                        chosen[place, 0], chosen[place, 1], chosen[place, 2] = i, j, ratio
                    met += 1
    return min(met, width)


@compiled
def additions_of(m: Matrix, used: int, columns: int) -> int:
    """Return the additions: new variables plus those left in the rows."""
    total = used - columns
    for r in range(len(m)):
        filled = 0
        for c in range(used):
            filled += m[r, c] != 0
        total += max(filled - 1, 0)
    return total


@njit(stamped=SEARCH)
def shared_once(
    s: Sharing, columns: int, steps: Steps, kept: int, width: int, slack: int, weight: float, rng: Words
) -> int:
    """Share pairs until none repeats, starting with `steps[:kept]`; return the number of steps.

    Each step selects the pair of a sample of `width` with the highest number of occurrences plus `weight`
    times the change of the number of repeated pairs.
    """
    capacity = s.m.shape[1]
    chosen = np.zeros((width, 3), dtype=np.int32)
    s.counts[:] = 0
    for r in range(len(s.m)):
        count_row(s, r, columns, 1)
    used = columns
    for step in range(kept):
        take(s, steps[step, 0], steps[step, 1], steps[step, 2], used)
        used += 1
    while used < capacity:
        number = candidates(s.counts, used, len(s.pairs), slack, width, chosen, rng)
        if number == 0:
            break
        best = 0
        if number > 1:
            top = -1e9
            for c in range(number):
                i, j, ratio = chosen[c]
                score = float(s.counts[i, j, ratio])
                score += weight * take(s, i, j, ratio, used)
                give_back(s, i, j, ratio, used)
                score += 0.01 * below(rng, 10)
                if score > top:
                    top, best = score, c
        i, j, ratio = chosen[best]
        steps[used - columns, 0], steps[used - columns, 1], steps[used - columns, 2] = i, j, ratio
        take(s, i, j, ratio, used)
        used += 1
    return used - columns


@njit(stamped=SEARCH, nogil=True)
def shared_often(
    s: Sharing, start: Matrix, columns: int, best: Steps, found: tuple[int, int], runs: int, rng: Words
) -> tuple[int, int]:
    """Run `shared_once` from `start` with random widths, slacks and weights, half of the runs from a part of the best.

    `best` (capacity, 3) is replaced if a run is at least as good. Returns its number of steps and its additions, which
    are `found` before: additions < 0 mean that there is none yet.
    """
    best_steps, best_additions = found
    steps = np.zeros_like(best)
    for _ in range(runs):
        s.m[:] = start
        kept = 0
        if best_additions >= 0 and best_steps > 0 and below(rng, 2) == 0:
            kept = below(rng, best_steps)
            steps[:kept] = best[:kept]
        width = 1 if below(rng, 3) == 0 else 2 + below(rng, 12)
        slack = max(0, below(rng, 4) - 2)
        weight = below(rng, 100) / 100.0
        taken = shared_once(s, columns, steps, kept, width, slack, weight, rng)
        total = additions_of(s.m, columns + taken, columns)
        if best_additions < 0 or total <= best_additions:
            best_additions, best_steps = total, taken
            best[:taken] = steps[:taken]
    return best_steps, best_additions

"""Sharing of pairs among sums, compiled: randomised greedy choice of the pairs to compute once.

A matrix (rows, columns) of small integers represents sums of variables. A step selects two columns i < j
and a ratio p : q, adds a new variable p i + q j, and substitutes it for every multiple of that pair.
When no pair occurs twice, the additions are the new variables plus the additions left in the rows.

Source of greedy-potential: fmm_add_reduction's description of looking one step ahead.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...jit import njit
from ..terms.bits import SEARCH, compiled, next_draw

Matrix = npt.NDArray[np.int8]
Steps = npt.NDArray[np.int32]
Table = npt.NDArray[np.int16]
Counts = npt.NDArray[np.int16]


@compiled
def below(rng: npt.NDArray[np.uint64], limit: int) -> int:
    """Return a random number in [0, limit)."""
    rng[0] = next_draw(rng[0])
    return np.int64((rng[0] >> np.uint64(33)) % np.uint64(limit))  # type: ignore[return-value]  # compiled, it is one


@compiled
def count_row(m: Matrix, r: int, used: int, table: Table, counts: Counts, places: Steps, change: int) -> int:
    """Add or remove the pairs of a row in `counts`; return the change of the number of repeated pairs."""
    filled = 0
    for c in range(used):
        if m[r, c] != 0:
            places[filled] = c
            filled += 1
    gain, middle = 0, len(table) // 2
    for a in range(filled):
        i = places[a]
        for b in range(a + 1, filled):
            j = places[b]
            ratio = table[m[r, i] + middle, m[r, j] + middle]
            before = counts[i, j, ratio]
            counts[i, j, ratio] = before + change
            if change > 0:
                gain += before >= 1
            else:
                gain -= before >= 2
    return gain


@compiled
def take(
    m: Matrix, i: int, j: int, ratio: int, pairs: Steps, new: int, table: Table, counts: Counts, places: Steps
) -> int:
    """Substitute column `new` for a pair; return the change of the number of repeated pairs."""
    gain, middle = 0, len(table) // 2
    for r in range(len(m)):
        if m[r, i] != 0 and m[r, j] != 0 and table[m[r, i] + middle, m[r, j] + middle] == ratio:
            gain += count_row(m, r, new + 1, table, counts, places, -1)
            m[r, new] = m[r, i] // pairs[ratio, 0]
            m[r, i] = 0
            m[r, j] = 0
            gain += count_row(m, r, new + 1, table, counts, places, 1)
    return gain


@compiled
def give_back(
    m: Matrix, i: int, j: int, ratio: int, pairs: Steps, new: int, table: Table, counts: Counts, places: Steps
) -> None:
    """Invert `take`."""
    for r in range(len(m)):
        content = m[r, new]
        if content != 0:
            count_row(m, r, new + 1, table, counts, places, -1)
            m[r, i] = content * pairs[ratio, 0]
            m[r, j] = content * pairs[ratio, 1]
            m[r, new] = 0
            count_row(m, r, new + 1, table, counts, places, 1)


@compiled
def candidates(
    counts: Counts, used: int, ratios: int, slack: int, width: int, chosen: Steps, rng: npt.NDArray[np.uint64]
) -> int:
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
    m: Matrix,
    columns: int,
    table: Table,
    pairs: Steps,
    steps: Steps,
    kept: int,
    width: int,
    slack: int,
    weight: float,
    rng: npt.NDArray[np.uint64],
) -> int:
    """Share pairs in `m` until none repeats, starting with `steps[:kept]`; return the number of steps.

    Each step selects the pair of a sample of `width` with the highest number of occurrences plus `weight`
    times the change of the number of repeated pairs.
    """
    capacity = m.shape[1]
    counts = np.zeros((capacity, capacity, len(pairs)), dtype=np.int16)
    places = np.zeros(capacity, dtype=np.int32)
    chosen = np.zeros((width, 3), dtype=np.int32)
    for r in range(len(m)):
        count_row(m, r, columns, table, counts, places, 1)
    used = columns
    for s in range(kept):
        take(m, steps[s, 0], steps[s, 1], steps[s, 2], pairs, used, table, counts, places)
        used += 1
    while used < capacity:
        number = candidates(counts, used, len(pairs), slack, width, chosen, rng)
        if number == 0:
            break
        best = 0
        if number > 1:
            top = -1e9
            for c in range(number):
                i, j, ratio = chosen[c]
                score = float(counts[i, j, ratio])
                score += weight * take(m, i, j, ratio, pairs, used, table, counts, places)
                give_back(m, i, j, ratio, pairs, used, table, counts, places)
                score += 0.01 * below(rng, 10)
                if score > top:
                    top, best = score, c
        i, j, ratio = chosen[best]
        steps[used - columns, 0], steps[used - columns, 1], steps[used - columns, 2] = i, j, ratio
        take(m, i, j, ratio, pairs, used, table, counts, places)
        used += 1
    return used - columns


@njit(stamped=SEARCH, nogil=True)
def shared_often(
    start: Matrix,
    columns: int,
    table: Table,
    pairs: Steps,
    best: Steps,
    best_steps: int,
    best_additions: int,
    runs: int,
    rng: npt.NDArray[np.uint64],
) -> tuple[int, int]:
    """Run `shared_once` with random widths, slacks and weights, half of the runs from a prefix of the best so far.

    `best` (capacity, 3) is replaced if a run is at least as good; `best_additions` < 0 means that it is empty.
    Returns its number of steps and its additions.
    """
    steps = np.zeros_like(best)
    for _ in range(runs):
        m = start.copy()
        kept = 0
        if best_additions >= 0 and best_steps > 0 and below(rng, 2) == 0:
            kept = below(rng, best_steps)
            steps[:kept] = best[:kept]
        width = 1 if below(rng, 3) == 0 else 2 + below(rng, 12)
        slack = max(0, below(rng, 4) - 2)
        weight = below(rng, 100) / 100.0
        taken = shared_once(m, columns, table, pairs, steps, kept, width, slack, weight, rng)
        total = additions_of(m, columns + taken, columns)
        if best_additions < 0 or total <= best_additions:
            best_additions, best_steps = total, taken
            best[:taken] = steps[:taken]
    return best_steps, best_additions

"""Simulated annealing of the additions over ternary schemes of one rank, compiled.

Moves are flips, which change one row of two factors, and shears, which change the basis. A move that
adds no additions is accepted; one that does with a probability that decreases with the temperature.
"""

from __future__ import annotations

import numpy as np

from ...schemes_db.factor import IntArray
from ..basis.sparsify_kernel import is_full
from ..terms.bits import accepted, below, compiled
from ..terms.ternary_words import support_of, total_of, turned
from ..terms.words import Words
from .boyar_peralta import Sums, share_sums

_ZERO, _HALF = np.uint64(0), np.uint64(32)
_UNIT = 1 << 30
_NOISE = 48

HOT, COLD = 1.5, 0.2
"""First and last temperature, in additions."""

SHEARS = 10
"""Shears per thousand steps."""

RUNS = 2
"""Runs of sharing that determine the cost of a factor; four times as many at the start."""


@compiled(internal=True)
def factor_cost(s: Sums, rows: Words, inputs: int, runs: int, rng: Words) -> int:
    """Return the fewest additions of one factor in `runs` runs of sharing, up to a constant of the scheme's rank."""
    best = -1
    for run in range(runs):
        count = share_sums(s, rows, inputs, 1 + (run % 3) * _NOISE // 2, rng)
        if count >= 0 and (best < 0 or count < best):
            best = count
    return best if best >= 0 else _UNIT


@compiled
def flip_into(x: Words, new: Words, rng: Words) -> int:
    """Try a random flip from x: a b c + s a b' c' = a (b + t b') c + s a b' (c' - s t c), into `new`.

    Returns 3 g + h for the changed factors; or -1, with `new` unchanged, if no pair was found, a
    coefficient would leave {-1, 0, 1}, or a factor would be zero.
    """
    rank = x.shape[1]
    f, i, first = below(rng, 3), below(rng, rank), below(rng, rank)
    value = x[f, i]
    against = turned(value, _HALF)
    j = -1
    for q in range(rank):
        at = (first + q) % rank
        if at != i and (x[f, at] == value or x[f, at] == against):
            j = at
            break
    if j < 0:
        return -1
    coins = below(rng, 4)
    g, h = (f + 1) % 3, (f + 2) % 3
    if coins & 1:
        g, h = h, g
    t = np.uint64(coins >> 1) << np.uint64(5)
    minus = t ^ (_ZERO if x[f, j] == against else _HALF)
    left, right = turned(x[g, j], t), turned(x[h, i], minus)
    if left & x[g, i] != _ZERO or right & x[h, j] != _ZERO:
        return -1
    left, right = total_of(left, x[g, i]), total_of(right, x[h, j])
    if left == _ZERO or right == _ZERO:
        return -1
    new[g, i], new[h, j] = left, right
    return 3 * g + h


@compiled
def shear_into(x: Words, new: Words, table: Words, rng: Words) -> int:
    """Try a random shear from x into `new`; return as `flip_into` does."""
    shear, sign = below(rng, len(table)), np.uint64(below(rng, 2)) * _HALF
    for side in range(2):
        f = np.int64(table[shear, side, 0])
        mask = table[shear, side, 2]
        mask |= mask << _HALF
        turn = sign if side == 0 else sign ^ _HALF
        for r in range(x.shape[1]):
            moved = turned(((x[f, r] >> table[shear, side, 1]) & mask) << table[shear, side, 3], turn)
            new[f, r] = total_of(moved, x[f, r])
            if moved & x[f, r] != _ZERO or new[f, r] == _ZERO:
                for e in range(3):
                    copy_factor(x, new, e)
                return -1
    return 3 * np.int64(table[shear, 0, 0]) + np.int64(table[shear, 1, 0])  # type: ignore[return-value]


@compiled(internal=True)
def full_products(x: Words, masks: Words) -> int:
    """Return the number of full products, which does not depend on signs."""
    total = 0
    for r in range(x.shape[1]):
        total += is_full(support_of(x[0, r]), support_of(x[1, r]), support_of(x[2, r]), masks)
    return total


@compiled(internal=True)
def copy_factor(source: Words, destination: Words, f: int) -> None:
    """Copy factor f of one array to the other."""
    for r in range(source.shape[1]):
        destination[f, r] = source[f, r]


@compiled(nogil=True)
def cool(
    x: Words, new: Words, best: Words, s: Sums, inputs: IntArray, table: Words, masks: Words, steps: int, rng: Words
) -> None:
    """Walk `steps` steps from x, which is (3, R) and changed in place; store the cheapest scheme in `best`.

    `new` is scratch. `table` and `masks` are `shear_table` and `half_masks` of `shears`; the number of full
    products never increases.
    """
    for f in range(3):
        copy_factor(x, best, f)
        copy_factor(x, new, f)
    full = full_products(x, masks)
    costs = (
        factor_cost(s, x[0], inputs[0], 4 * RUNS, rng),
        factor_cost(s, x[1], inputs[1], 4 * RUNS, rng),
        factor_cost(s, x[2], inputs[2], 4 * RUNS, rng),
    )
    lowest = costs[0] + costs[1] + costs[2]
    for step in range(steps):
        changed = (
            shear_into(x, new, table, rng) if len(table) > 0 and below(rng, 1000) < SHEARS else flip_into(x, new, rng)
        )
        if changed < 0:
            continue
        g, h = changed // 3, changed % 3
        trial = (
            factor_cost(s, new[0], inputs[0], RUNS, rng) if g == 0 or h == 0 else costs[0],
            factor_cost(s, new[1], inputs[1], RUNS, rng) if g == 1 or h == 1 else costs[1],
            factor_cost(s, new[2], inputs[2], RUNS, rng) if g == 2 or h == 2 else costs[2],
        )
        growth = trial[0] + trial[1] + trial[2] - costs[0] - costs[1] - costs[2]
        heat = HOT * (COLD / HOT) ** (step / steps)
        taken = accepted(growth, heat, rng) and full_products(new, masks) <= full
        if not taken:
            copy_factor(x, new, g)
            copy_factor(x, new, h)
            continue
        copy_factor(new, x, g)
        copy_factor(new, x, h)
        costs = trial
        if costs[0] + costs[1] + costs[2] < lowest:
            lowest = costs[0] + costs[1] + costs[2]
            for f in range(3):
                copy_factor(x, best, f)

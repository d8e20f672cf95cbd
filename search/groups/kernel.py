"""Walk over ternary schemes that lowers the rank of their product with an inner format, compiled.

The walk is a Metropolis walk by flips. Every product has a label, the factor by which it is in a group; changes of
labels are moves, too, so that the cost of a state is that of disjoint groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...schemes_db.factor import IntArray
from ..terms.bits import accepted, below, compiled
from ..terms.ternary_words import total_of, turn_of, turned
from ..terms.words import Words

_ZERO, _HALF = np.uint64(0), np.uint64(32)
_COOLING = 1024
_RELABEL = 8
_PLUS_TRIES = 32


class State(NamedTuple):
    """Terms of a scheme.

    Attributes:
        x: (3, slots) factors as `ternary_words`, with the lowest coefficient 1.
        signs: (slots,) 0 for terms with sign 1, 32 for -1.
        labels: (slots,) the factor by which a term is in a group.
        numbers: (2,) rank and cost.
    """

    x: Words
    signs: Words
    labels: IntArray
    numbers: IntArray


class Costs(NamedTuple):
    """Cost of a scheme: `rank` a product less `gains` (3, slots + 1) of groups by factor and size.

    `axes` are the factors by which groups save something.
    """

    rank: int
    gains: IntArray
    axes: IntArray


@compiled(internal=True)
def count(s: State, f: int, value: np.uint64, grouped: bool) -> int:
    """Return the number of terms with a factor f, of those with the label f only if `grouped`."""
    total = 0
    for t in range(s.numbers[0]):
        total += (s.x[f, t] == value) & ((not grouped) | (s.labels[t] == f))
    return total


@compiled(internal=True)
def cost_of(s: State, c: Costs) -> int:
    total = s.numbers[0] * c.rank
    for t in range(s.numbers[0]):
        f, first = s.labels[t], True
        for u in range(t):
            first &= s.labels[u] != f or s.x[f, u] != s.x[f, t]
        if first:
            total -= c.gains[f, count(s, f, s.x[f, t], True)]
    return total


@compiled(internal=True)
def put(s: State, f: int, t: int, value: np.uint64) -> None:
    """Set a factor of a term to a value of any sign."""
    turn = turn_of(value)
    s.x[f, t] = turned(value, turn)
    s.signs[t] ^= turn


@compiled(internal=True)
def drop(s: State, t: int) -> None:
    """Remove a term: the last one takes its place."""
    last = s.numbers[0] - 1
    for f in range(3):
        s.x[f, t] = s.x[f, last]
    s.signs[t], s.labels[t] = s.signs[last], s.labels[last]
    s.numbers[0] = last


@compiled(internal=True)
def odd_factor(s: State, t: int, u: int) -> int:
    """Return a factor beside which two terms share both others; 3 if there is none."""
    equal_u, equal_v, equal_w = s.x[0, t] == s.x[0, u], s.x[1, t] == s.x[1, u], s.x[2, t] == s.x[2, u]
    if equal_u and equal_v:
        return 2
    return 0 if equal_v and equal_w else 1 if equal_u and equal_w else 3


@compiled(internal=True)
def merge_one(s: State) -> bool:
    """Drop a term with a zero factor, or merge two that share two factors; return False if there are none."""
    for t in range(s.numbers[0]):
        if s.x[0, t] == _ZERO or s.x[1, t] == _ZERO or s.x[2, t] == _ZERO:
            drop(s, t)
            return True
        for u in range(t):
            f = odd_factor(s, t, u)
            if f < 3:
                other = turned(s.x[f, u], s.signs[t] ^ s.signs[u])
                if other & s.x[f, t] == _ZERO:
                    put(s, f, t, total_of(other, s.x[f, t]))
                    drop(s, u)
                    return True
    return False


@compiled(internal=True)
def plus(s: State, rng: Words) -> bool:
    """Split two terms into three, see `flipgraph.moves.plus`; return False if no pair that is drawn allows it."""
    rank = s.numbers[0]
    for _ in range(_PLUS_TRIES if rank > 1 else 0):
        i, j = below(rng, rank), below(rng, rank)
        if s.x[0, i] == s.x[0, j] or s.x[1, i] == s.x[1, j] or s.x[2, i] == s.x[2, j]:
            continue
        f = below(rng, 3)
        g = (f + 1 + below(rng, 2)) % 3
        e = 3 - f - g
        p, q = np.uint64(below(rng, 2)) * _HALF, np.uint64(below(rng, 2)) * _HALF
        ai, aj, bi, bj = s.x[f, i], s.x[f, j], s.x[g, i], s.x[g, j]
        ci, cj = turned(s.x[e, i], s.signs[i]), turned(s.x[e, j], s.signs[j])
        b, c, c_less, a_less = turned(bj, p), turned(cj, q), turned(ci, p ^ _HALF), turned(ai, q ^ _HALF)
        if b & bi != _ZERO or c & c_less != _ZERO or a_less & aj != _ZERO:
            continue
        if bi == turned(b, _HALF) or c == turned(c_less, _HALF) or aj == turned(a_less, _HALF):
            continue
        put(s, g, i, total_of(b, bi))
        s.signs[j] = s.signs[rank] = _ZERO
        put(s, f, j, ai)
        put(s, g, j, bj)
        put(s, e, j, total_of(c, c_less))
        put(s, f, rank, total_of(a_less, aj))
        put(s, g, rank, bj)
        put(s, e, rank, cj)
        s.labels[rank] = s.labels[j]
        s.numbers[0] = rank + 1
        return True
    return False


@compiled(internal=True)
def moved(s: State, c: Costs, t: int, f: int, value: np.uint64) -> int:
    """Return how much the cost grows if a term leaves its group for that of a value of factor f."""
    old = s.labels[t]
    before, after = count(s, old, s.x[old, t], True), count(s, f, value, True)
    return c.gains[old, before] - c.gains[old, before - 1] + c.gains[f, after] - c.gains[f, after + 1]


@compiled(internal=True)
def relabel(s: State, c: Costs, heat: float, rng: Words) -> None:
    """Try to move a random term to the group by another factor."""
    t, f = below(rng, s.numbers[0]), c.axes[below(rng, len(c.axes))]
    if f != s.labels[t]:
        growth = moved(s, c, t, f, s.x[f, t])
        if accepted(growth, heat, rng):
            s.labels[t] = f
            s.numbers[1] += growth


@compiled(internal=True)
def reducible(s: State, t: int) -> bool:
    """Return whether a term shares two factors with another."""
    found = False
    for u in range(s.numbers[0]):
        found |= t != u and odd_factor(s, t, u) < 3
    return found


@compiled(internal=True)
def flip(s: State, c: Costs, heat: float, rng: Words) -> bool:
    """Try a flip a b c + s a b' c' = a (b + t b') c + s a b' (c' - s t c); return whether the rank may fall now."""
    f, i = below(rng, 3), below(rng, s.numbers[0])
    others = count(s, f, s.x[f, i], False) - 1
    if others < 1:
        return False
    left, j = below(rng, others), -1
    for t in range(s.numbers[0]):
        if s.x[f, t] == s.x[f, i] and t != i:
            if left == 0:
                j = t
            left -= 1
    coins = below(rng, 4)
    g = (f + 1 + (coins & 1)) % 3
    e = 3 - f - g
    sign = np.uint64(coins >> 1) << np.uint64(5)
    more, less = turned(s.x[g, j], sign), turned(s.x[e, i], sign ^ s.signs[i] ^ s.signs[j] ^ _HALF)
    if more & s.x[g, i] != _ZERO or less & s.x[e, j] != _ZERO:
        return False
    b, c_new = total_of(more, s.x[g, i]), total_of(less, s.x[e, j])
    if b == _ZERO or c_new == _ZERO:
        put(s, g, i, b)
        put(s, e, j, c_new)
        return True
    growth = 0
    if s.labels[i] == g:
        growth += moved(s, c, i, g, turned(b, turn_of(b)))
    if s.labels[j] == e:
        growth += moved(s, c, j, e, turned(c_new, turn_of(c_new)))
    if not accepted(growth, heat, rng):
        return False
    put(s, g, i, b)
    put(s, e, j, c_new)
    s.numbers[1] += growth
    return reducible(s, i) or reducible(s, j)


@compiled(internal=True)
def copy(source: State, destination: State) -> None:
    for t in range(source.numbers[0]):
        for f in range(3):
            destination.x[f, t] = source.x[f, t]
        destination.signs[t], destination.labels[t] = source.signs[t], source.labels[t]
    destination.numbers[0], destination.numbers[1] = source.numbers[0], source.numbers[1]


@compiled(nogil=True)
def cool(
    s: State, best: State, c: Costs, steps: int, hot: float, cold: float, plus_after: int, limit: int, rng: Words
) -> None:
    """Walk `steps` steps from a state, changed in place, and store the one of the lowest cost in `best`.

    The temperature falls from `hot` to `cold`, in products. After `plus_after` steps without a new lowest cost a plus
    raises the rank, to at most `limit`.
    """
    s.numbers[1] = cost_of(s, c)
    copy(s, best)
    since, heat = 0, hot
    for step in range(steps):
        if step % _COOLING == 0:
            heat = hot * (cold / hot) ** (step / steps)
        since += 1
        changed = False
        if since >= plus_after:
            since = 0
            changed = s.numbers[0] < limit and plus(s, rng)
        elif len(c.axes) > 1 and below(rng, _RELABEL) == 0:
            relabel(s, c, heat, rng)
        else:
            changed = flip(s, c, heat, rng)
        if changed:
            while merge_one(s):
                pass
            s.numbers[1] = cost_of(s, c)
        if s.numbers[1] < best.numbers[1]:
            since = 0
            copy(s, best)

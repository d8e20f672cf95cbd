"""Walk over ternary schemes that lowers the rank of their product with an inner format, compiled.

The walk is a Metropolis walk by flips. Every product has a label, the factor by which it is in a group; changes of
labels are moves, too, so that the cost of a state is that of disjoint groups.

`lanes` look at the terms together: a lane sees every width-th one. All lanes draw the same numbers and take the same
branches; lane 0 alone writes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...schemes_db.factor import IntArray
from ..terms.bits import accepted, below, compiled
from ..terms.lanes import lane, meet, voter, votes, width
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
    """Cost of a scheme over blocks, which along each side may have two sizes.

    A product is long along a side if both of its matrices that have the side read or write a longer block; `size_of`
    says along which.

    Attributes:
        ranks: (8,) of a product by its size.
        gains: (8, 3, slots + 1) what groups of products of one size save, by factor and number.
        axes: the factors by which groups save something.
        longer: (6,) the longer blocks in factors: of U along m and k, of V along k and n, of W along m and n.
    """

    ranks: IntArray
    gains: IntArray
    axes: IntArray
    longer: Words


class Cooling(NamedTuple):
    """Steps and temperatures of a walk.

    Attributes:
        limit: the highest rank of its detour.
        steps: the steps that cool it, at `hot` to `cold` times what a pair saves, `pair`; after `plus_after` of them
            without a lower cost it makes a plus.
        detour: steps of a detour (times 1 to 4), with a plus after `detour_plus`; and those of each of the `descents`
            that it has to return.
    """

    limit: int
    steps: int
    plus_after: int
    detour: int
    detour_plus: int
    descents: int
    pair: float
    hot: float
    cold: float


@compiled(internal=True)
def size_of(c: Costs, u: np.uint64, v: np.uint64, w: np.uint64) -> int:
    """Return the size of a product with these factors: 1 if it is long along m, and 2 along k, and 4 along n."""
    long_m = (u & c.longer[0] != _ZERO) & (w & c.longer[4] != _ZERO)
    long_k = (u & c.longer[1] != _ZERO) & (v & c.longer[2] != _ZERO)
    long_n = (v & c.longer[3] != _ZERO) & (w & c.longer[5] != _ZERO)
    return int(long_m) + 2 * int(long_k) + 4 * int(long_n)


@compiled(internal=True)
def own_size(s: State, c: Costs, t: int) -> int:
    """Return the size of a term."""
    return size_of(c, s.x[0, t], s.x[1, t], s.x[2, t])


@compiled(internal=True)
def size_with(s: State, c: Costs, t: int, f: int, value: np.uint64) -> int:
    """Return the size of a term if its factor f becomes `value`."""
    return size_of(c, value if f == 0 else s.x[0, t], value if f == 1 else s.x[1, t], value if f == 2 else s.x[2, t])


@compiled(internal=True)
def sharing(s: State, f: int, value: np.uint64) -> int:
    """Return the number of terms with a factor f."""
    total, rank = 0, s.numbers[0]
    for first in range(0, rank, width()):
        t = first + lane()
        total += votes(t < rank and s.x[f, t] == value)
    return total


@compiled(internal=True)
def grouped(s: State, c: Costs, f: int, value: np.uint64, size: int, i: int, j: int) -> int:
    """Return the number of terms but i and j in the group of a factor f and a size."""
    total, rank = 0, s.numbers[0]
    for first in range(0, rank, width()):
        t = first + lane()
        hit = t < rank and s.x[f, t] == value and s.labels[t] == f and t != i and t != j
        total += votes(hit and own_size(s, c, t) == size)
    return total


@compiled(internal=True)
def price(c: Costs, f: int, size: int, others: int) -> int:
    """Return what a term of a size adds to the cost in a group of so many others."""
    return c.ranks[size] - c.gains[size, f, others + 1] + c.gains[size, f, others]


@compiled(internal=True)
def other(s: State, f: int, i: int, k: int) -> int:
    """Return the k-th of the other terms with the factor f of term i; there are more than k."""
    rank = s.numbers[0]
    for first in range(0, rank, width()):
        t = first + lane()
        hit = t < rank and t != i and s.x[f, t] == s.x[f, i]
        here = votes(hit)
        if k < here:
            return first + voter(hit, k)
        k -= here
    return i


@compiled(internal=True)
def cost_of(s: State, c: Costs) -> int:
    """Return the cost of all terms: the price of each in the group of those before it."""
    total, rank = 0, s.numbers[0]
    for t in range(rank):
        s.numbers[0] = t
        f, size = s.labels[t], own_size(s, c, t)
        total += price(c, f, size, grouped(s, c, f, s.x[f, t], size, -1, -1))
    s.numbers[0] = rank
    return total


@compiled(internal=True)
def put(s: State, f: int, t: int, value: np.uint64) -> None:
    """Set a factor of a term to a value of any sign."""
    turn = turn_of(value)
    sign = s.signs[t] ^ turn
    meet()
    if lane() == 0:
        s.x[f, t] = turned(value, turn)
        s.signs[t] = sign
    meet()


@compiled(internal=True)
def drop(s: State, t: int) -> None:
    """Remove a term: the last one takes its place."""
    last = s.numbers[0] - 1
    meet()
    if lane() == 0:
        for f in range(3):
            s.x[f, t] = s.x[f, last]
        s.signs[t], s.labels[t] = s.signs[last], s.labels[last]
    meet()
    s.numbers[0] = last


@compiled(internal=True)
def odd_factor(s: State, t: int, u: int) -> int:
    """Return a factor beside which two terms share both others; 3 if there is none."""
    equal_u, equal_v, equal_w = s.x[0, t] == s.x[0, u], s.x[1, t] == s.x[1, u], s.x[2, t] == s.x[2, u]
    if equal_u and equal_v:
        return 2
    return 0 if equal_v and equal_w else 1 if equal_u and equal_w else 3


@compiled(internal=True)
def merges(s: State, t: int, u: int) -> bool:
    """Return whether two terms share two factors, and the third ones have a sum over -1, 0, 1."""
    f = odd_factor(s, t, u)
    return f < 3 and turned(s.x[f, u], s.signs[t] ^ s.signs[u]) & s.x[f, t] == _ZERO


@compiled(internal=True)
def merge_one(s: State) -> bool:
    """Drop a term with a zero factor, or merge two that share two factors; return False if there are none."""
    for t in range(s.numbers[0]):
        if s.x[0, t] == _ZERO or s.x[1, t] == _ZERO or s.x[2, t] == _ZERO:
            drop(s, t)
            return True
        for first in range(0, t, width()):
            u = first + lane()
            hit = u < t and merges(s, t, u)
            if votes(hit) > 0:
                u = first + voter(hit, 0)
                f = odd_factor(s, t, u)
                put(s, f, t, total_of(turned(s.x[f, u], s.signs[t] ^ s.signs[u]), s.x[f, t]))
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
        if lane() == 0:
            s.signs[j] = s.signs[rank] = _ZERO
            s.labels[rank] = s.labels[j]
        meet()
        put(s, f, j, ai)
        put(s, g, j, bj)
        put(s, e, j, total_of(c, c_less))
        put(s, f, rank, total_of(a_less, aj))
        put(s, g, rank, bj)
        put(s, e, rank, cj)
        s.numbers[0] = rank + 1
        return True
    return False


@compiled(internal=True)
def relabel(s: State, c: Costs, heat: float, rng: Words) -> None:
    """Try to move a random term to the group by another factor."""
    t, f = below(rng, s.numbers[0]), c.axes[below(rng, len(c.axes))]
    old = s.labels[t]
    if f != old:
        size = own_size(s, c, t)
        growth = price(c, f, size, grouped(s, c, f, s.x[f, t], size, t, -1))
        growth -= price(c, old, size, grouped(s, c, old, s.x[old, t], size, t, -1))
        if accepted(growth, heat, rng):
            meet()
            if lane() == 0:
                s.labels[t] = f
            meet()
            s.numbers[1] += growth


@compiled(internal=True)
def growth_of(s: State, c: Costs, i: int, g: int, b: np.uint64, j: int, e: int, d: np.uint64) -> int:
    """Return how much the cost grows if factor g of term i becomes b, and factor e of term j becomes d."""
    label_i, label_j = s.labels[i], s.labels[j]
    old_i, old_j = own_size(s, c, i), own_size(s, c, j)
    new_i = size_with(s, c, i, g, b)
    new_j = size_with(s, c, j, e, d)
    value_i = b if label_i == g else s.x[label_i, i]
    value_j = d if label_j == e else s.x[label_j, j]
    i_moves, j_moves = label_i == g or new_i != old_i, label_j == e or new_j != old_j
    gone_i, gone_j = i if i_moves else -1, j if j_moves else -1
    growth = 0
    if i_moves:
        growth -= price(c, label_i, old_i, grouped(s, c, label_i, s.x[label_i, i], old_i, i, -1))
        growth += price(c, label_i, new_i, grouped(s, c, label_i, value_i, new_i, i, gone_j))
    if j_moves:
        growth -= price(c, label_j, old_j, grouped(s, c, label_j, s.x[label_j, j], old_j, j, gone_i))
        together = int(i_moves and label_i == label_j and new_i == new_j and value_i == value_j)
        growth += price(c, label_j, new_j, grouped(s, c, label_j, value_j, new_j, gone_i, j) + together)
    return growth


@compiled(internal=True)
def reducible(s: State, t: int) -> bool:
    """Return whether a term shares two factors with another."""
    partners, rank = 0, s.numbers[0]
    for first in range(0, rank, width()):
        u = first + lane()
        partners += votes(u < rank and t != u and odd_factor(s, t, u) < 3)
    return partners > 0


@compiled(internal=True)
def flip(s: State, c: Costs, heat: float, rng: Words) -> bool:
    """Try a flip a b c + s a b' c' = a (b + t b') c + s a b' (c' - s t c); return whether the rank may fall now."""
    f, i = below(rng, 3), below(rng, s.numbers[0])
    others = sharing(s, f, s.x[f, i]) - 1
    if others < 1:
        return False
    j = other(s, f, i, below(rng, others))
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
    growth = growth_of(s, c, i, g, turned(b, turn_of(b)), j, e, turned(c_new, turn_of(c_new)))
    if not accepted(growth, heat, rng):
        return False
    put(s, g, i, b)
    put(s, e, j, c_new)
    s.numbers[1] += growth
    return reducible(s, i) or reducible(s, j)


@compiled(internal=True)
def copy(source: State, destination: State) -> None:
    for t in range(lane(), source.numbers[0], width()):
        for f in range(3):
            destination.x[f, t] = source.x[f, t]
        destination.signs[t], destination.labels[t] = source.signs[t], source.labels[t]
    meet()
    destination.numbers[0], destination.numbers[1] = source.numbers[0], source.numbers[1]


@compiled(internal=True)
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


@compiled(nogil=True)
def walk(s: State, best: State, c: Costs, p: Cooling, rank: int, rng: Words) -> bool:
    """Walk from a state to `best`, one of at most a rank and of low cost; return False if it does not get down to it.

    A detour through higher ranks leads to another scheme, then the walk is cooled towards more groups.
    """
    cool(s, best, c, p.detour * (1 + rng[0] % 4), 2 * p.pair, p.pair, p.detour_plus, p.limit, rng)
    for _ in range(p.descents):
        if s.numbers[0] > rank:
            cool(s, best, c, p.detour, p.pair, p.pair, p.detour + 1, 0, rng)
    if s.numbers[0] <= rank:
        cool(s, best, c, p.steps, p.hot * p.pair, p.cold * p.pair, p.plus_after, rank, rng)
    return s.numbers[0] <= rank

"""The moves of the flip graph over GF(2), compiled: flip, reduce, plus.

Sources: Kauers and Moosbauer, "Flip graphs for matrix multiplication" (arXiv 2212.01175) for flips
and reductions; Arai, Ichikawa and Hukushima, "Adaptive flip graph algorithm" (arXiv 2312.16960) for
the plus transition. `reference.py` says the same in plain Python.
"""

from __future__ import annotations

import numpy as np

from .arena import (
    RANK,
    REDUCTIONS,
    ZERO,
    Arena,
    add,
    bit_in,
    bucket_at,
    drop,
    free_slot,
    pick,
    place,
    place_of,
    put,
    value_at,
)
from .bits import ONE, compiled, next_draw, popcount, scalar_code, select_bit
from .packed import Words
from .policy import PLUS_TRIES

NONE, MISS, FLIP, HIT = 0, 1, 2, 3
"""What a try of a flip came to: no active slot, unequal partner, a flip, a flip that lets terms merge."""

_TWO, _SIX, _SIGN, _HALF, _LOW = (np.uint64(n) for n in (2, 6, 31, 32, 0xFFFFFFFF))
_NEXT, _LAST, _THREE = np.uint64(0b001001), np.uint64(0b010010), np.uint64(3)


@compiled(forceinline=True)
def count_active(lanes: tuple[int, ...], ring: tuple[int, ...], active: Words) -> np.uint64:
    """How many slots are active, over the three factors, or the one family of a symmetric walk."""
    total = ZERO
    for q in range(len(lanes) if len(ring) == 1 else 3 * len(lanes)):
        total += popcount(active[q])
    return total


@compiled(forceinline=True)
def choose(
    lanes: tuple[int, ...],
    ring: tuple[int, ...],
    x: Words,
    buckets: Words,
    active: Words,
    draw: np.uint64,
    total: np.uint64,
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]:
    """(f, i, j, h, coin): an active slot i of factor f, another slot j of its bucket h, and a bit, from one draw.

    The high half of the draw picks among the `total` > 0 active slots of all three factors, its low
    half among the bucket, so pairs in small buckets are favoured a little.
    """
    width = len(lanes)
    count = np.uint64(width)
    k = ((draw >> _HALF) * total) >> _HALF
    word, skipped, seen = ZERO, ZERO, ZERO
    for q in range((width if len(ring) == 1 else 3 * width) - 1):
        seen += popcount(active[q])
        past = k >= seen
        word += ONE if past else ZERO
        skipped = seen if past else skipped
    f = word // count
    i = ((word - f * count) << _SIX) + select_bit(active[word], k - skipped)
    h = bucket_at(lanes, f, x[place_of(lanes, f, i)])

    others = ZERO
    for q in range(width):
        others += popcount(buckets[h + np.uint64(q)])
    product = (draw & _LOW) * (others - ONE)
    k = product >> _HALF
    lane_j, skipped, seen = ZERO, ZERO, ZERO
    for q in range(width - 1):
        p = np.uint64(q)
        seen += popcount(buckets[h + p] & ~bit_in(lanes, p, i))
        past = k >= seen
        lane_j += ONE if past else ZERO
        skipped = seen if past else skipped
    j = (lane_j << _SIX) + select_bit(buckets[h + lane_j] & ~bit_in(lanes, lane_j, i), k - skipped)
    return f, i, j, h, (product >> _SIGN) & ONE


@compiled(forceinline=True)
def meets_another(
    lanes: tuple[int, ...],
    x: Words,
    buckets: Words,
    g: np.uint64,
    e: np.uint64,
    i: np.uint64,
    j: np.uint64,
    left: np.uint64,
    right: np.uint64,
    h: np.uint64,
) -> bool:
    """Whether term i, whose factor g is now `left`, or j, whose e is `right`, has two factors of another term.

    `h` is the bucket of the third factor. Slots that share two buckets with a changed slot are
    compared only if there are any.
    """
    hg, he = bucket_at(lanes, g, left), bucket_at(lanes, e, right)
    hi, hj = bucket_at(lanes, e, x[place_of(lanes, e, i)]), bucket_at(lanes, g, x[place_of(lanes, g, j)])
    near = ZERO
    for q in range(len(lanes)):
        p = np.uint64(q)
        same = buckets[h + p]
        near |= (buckets[hg + p] & (same | buckets[hi + p])) & ~bit_in(lanes, p, i)
        near |= (buckets[he + p] & (same | buckets[hj + p])) & ~bit_in(lanes, p, j)
    return near != ZERO and has_double(lanes, x, i, j)


@compiled(forceinline=True)
def try_flip(
    lanes: tuple[int, ...], ring: tuple[int, ...], x: Words, buckets: Words, active: Words, draw: np.uint64
) -> int:
    """One flip from one draw: a b c + a b' c' = a (b + b') c + a b' (c + c')."""
    scalar_code()
    event = NONE
    total = count_active(lanes, ring, active)
    if total != ZERO:
        f, i, j, h, _ = choose(lanes, ring, x, buckets, active, draw, total)
        event = MISS
        if x[place_of(lanes, f, j)] == x[place_of(lanes, f, i)]:
            g, e = (_NEXT >> (f + f)) & _THREE, (_LAST >> (f + f)) & _THREE
            left = x[place_of(lanes, g, i)] ^ x[place_of(lanes, g, j)]
            right = x[place_of(lanes, e, j)] ^ x[place_of(lanes, e, i)]
            place(lanes, x, buckets, active, g, i, left)
            place(lanes, x, buckets, active, e, j, right)
            event = FLIP
            if left == ZERO or right == ZERO or meets_another(lanes, x, buckets, g, e, i, j, left, right, h):
                event = HIT
    return event


@compiled
def has_double(lanes: tuple[int, ...], x: Words, i: np.uint64, j: np.uint64) -> bool:
    """Whether another term has two factors in common with term i or with term j."""
    found = False
    for t in range(64 * len(lanes)):
        for changed in (i, j):
            equal = 0
            for f in range(3):
                value = x[place_of(lanes, np.uint64(f), np.uint64(t))]
                if value != ZERO and value == x[place_of(lanes, np.uint64(f), changed)]:
                    equal += 1
            found |= equal >= 2 and np.uint64(t) != changed
    return found


@compiled
def settle(s: Arena) -> None:
    """Drop terms with a zero factor and merge pairs that share two factors, until there are none."""
    slots = 64 * len(s.lanes)
    x = s.x
    again = True
    while again:
        again = False
        for t in range(slots):
            i = np.uint64(t)
            if is_live(s.live, i) and (x[t] == ZERO or x[slots + t] == ZERO or x[2 * slots + t] == ZERO):
                drop(s, i)
                s.tally[REDUCTIONS] += 1
        for t in range(slots):
            for u in range(t + 1, slots if is_live(s.live, np.uint64(t)) else 0):
                same_u, same_v = x[t] == x[u], x[slots + t] == x[slots + u]
                same_w = x[2 * slots + t] == x[2 * slots + u]
                merging = (same_u and same_v) or (same_u and same_w) or (same_v and same_w)
                if merging and is_live(s.live, np.uint64(u)):
                    f = np.uint64(0 if not same_u else 1 if not same_v else 2)
                    put(s, f, np.uint64(t), value_at(s, f, t) ^ value_at(s, f, u))
                    drop(s, np.uint64(u))
                    s.tally[REDUCTIONS] += 1
                    again = True


@compiled
def is_live(live: Words, i: np.uint64) -> bool:
    """Whether a slot is in a set."""
    return (live[i >> _SIX] >> (i & np.uint64(63))) & ONE != ZERO


@compiled
def reduce_dependent(s: Arena) -> bool:
    """Take out one term whose factor is a sum of others' among terms that share another factor.

    For terms a b_t c_t with b_j = sum of some b_t, the c_j goes to those c_t and term j is dropped.
    Groups of more than 64 terms are looked at in their first 64. Returns whether there was one.
    """
    slots = 64 * len(s.lanes)
    members, rows, masks = s.scratch[0], s.scratch[1], s.scratch[2]
    for f in range(3):
        for first in range(slots):
            value = value_at(s, f, first)
            if value == ZERO or crowd(s, np.uint64(f), value) < _THREE:
                continue
            size = 0
            for t in range(slots):
                if value_at(s, f, t) == value and size < 64:
                    if size == 0 and t != first:
                        break
                    members[size] = t
                    size += 1
            if size < 3:
                continue
            for g in range(3):
                if g == f:
                    continue
                for t in range(size):
                    word, mask = value_at(s, g, members[t]), ONE << np.uint64(t)
                    for q in range(t):
                        if word ^ rows[q] < word:
                            word ^= rows[q]
                            mask ^= masks[q]
                    if word == ZERO:
                        absorb(s, np.uint64(3 - f - g), members, t, mask)
                        return True
                    rows[t] = word
                    masks[t] = mask
    return False


@compiled
def crowd(s: Arena, f: np.uint64, value: np.uint64) -> np.uint64:
    """How many slots are in the bucket of a factor value."""
    h, total = bucket_at(s.lanes, f, value), ZERO
    for q in range(len(s.lanes)):
        total += popcount(s.buckets[h + np.uint64(q)])
    return total


@compiled
def absorb(s: Arena, e: np.uint64, members: np.ndarray, last: int, mask: np.uint64) -> None:
    """Add factor e of members[last] to that of every other member in the mask, and drop members[last]."""
    j = members[last]
    for t in range(last):
        if (mask >> np.uint64(t)) & ONE != ZERO:
            i = members[t]
            put(s, e, i, value_at(s, e, i) ^ value_at(s, e, j))
    drop(s, j)
    s.tally[REDUCTIONS] += 1


@compiled
def plus(s: Arena) -> bool:
    """Two terms become three that a flip path may lead elsewhere from; False where no pair allows it.

    a b c + a' b' c' = a (b + b') c + a b' (c + c') + (a + a') b' c', the roles of the factors permuted
    by the draw. Both terms must differ in all factors.
    """
    slot = free_slot(s)
    if slot == np.uint64(64 * len(s.lanes)) or s.tally[RANK] < 2:
        return False
    for _ in range(PLUS_TRIES):
        draw = next_draw(s.rng[0])
        i = pick(s.live, draw >> _HALF)
        draw = next_draw(draw)
        j = pick(s.live, draw >> _HALF)
        s.rng[0] = draw
        equal = False
        for q in range(3):
            equal |= value_at(s, q, i) == value_at(s, q, j)
        if equal:
            continue
        turn = ((draw & _LOW) * np.uint64(6)) >> _HALF
        f = turn >> ONE
        g = (f + (ONE if turn & ONE == ZERO else _TWO)) % np.uint64(3)
        e = np.uint64(3) - f - g
        third = s.scratch[0]
        third[f] = value_at(s, f, i) ^ value_at(s, f, j)
        third[g] = value_at(s, g, j)
        third[e] = value_at(s, e, j)
        put(s, g, i, value_at(s, g, i) ^ value_at(s, g, j))
        put(s, e, j, value_at(s, e, i) ^ value_at(s, e, j))
        put(s, f, j, value_at(s, f, i))
        add(s, slot, third[0], third[1], third[2])
        return True
    return False

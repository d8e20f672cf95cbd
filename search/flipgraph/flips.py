"""Flips of walks without symmetry, compiled for every ring, and their reductions by linear dependence; see `moves`."""

from __future__ import annotations

import numpy as np

from ..terms.bits import ONE, compiled, popcount, scalar_code, select_bit
from ..terms.rings import ZERO, Value, added, equal, opposite, sign_from, sign_of, turned
from ..terms.words import Words
from .constraints import FULL, allowed, change_of_full
from .elements import count_rank, drop, put
from .slots import SlotKind, WordArena, bit_in, bucket_at, factor_at, place, place_of, term_sign, turn_term

NONE, NO_PARTNER, REJECTED, FLIP, GAIN, REDUCIBLE = range(6)
"""Events of `try_flip`: no active slot; an unequal partner or a sum outside the ring; a flip rejected by the
guard; a flip; a flip that reduces the number of full products; a flip after which terms can be reduced."""

_THREE, _SIX, _SIGN, _HALF, _LOW = (np.uint64(n) for n in (3, 6, 31, 32, 0xFFFFFFFF))
NEXT, LAST = np.uint64(0b001001), np.uint64(0b010010)
"""The factors after f and after that, two bits for each f."""


@compiled(forceinline=True)
def count_active(kind: SlotKind, active: Words) -> np.uint64:
    """Return the number of active slots over the three factors, or of active nodes of a cyclic walk."""
    total = ZERO
    for q in range(3 * len(kind.lanes) if len(kind.turns) < 3 else len(kind.lanes)):
        total += popcount(active[q])
    return total


@compiled(forceinline=True)
def choose(
    kind: SlotKind, x: Words, buckets: Words, active: Words, draw: np.uint64, total: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]:
    """Select (f, i, j, h, coin): an active slot i of factor f, another slot j of its bucket h, and a bit, by one draw.

    The high half of the draw selects one of the `total` > 0 active slots of all three factors, its low
    half one of the bucket, so pairs in small buckets are slightly more likely.
    """
    width = len(kind.lanes)
    count = np.uint64(width)
    k = ((draw >> _HALF) * total) >> _HALF
    word, skipped, seen = ZERO, ZERO, ZERO
    for q in range((3 * width if len(kind.turns) < 3 else width) - 1):
        seen += popcount(active[q])
        past = k >= seen
        word += ONE if past else ZERO
        skipped = seen if past else skipped
    f = word // count
    i = ((word - f * count) << _SIX) + select_bit(active[word], k - skipped)
    h = bucket_at(kind, f, factor_at(kind, x, f, i))

    others = ZERO
    for q in range(width):
        others += popcount(buckets[h + np.uint64(q)])
    product = (draw & _LOW) * (others - ONE)
    k = product >> _HALF
    lane_j, skipped, seen = ZERO, ZERO, ZERO
    for q in range(width - 1):
        p = np.uint64(q)
        seen += popcount(buckets[h + p] & ~bit_in(kind, p, i))
        past = k >= seen
        lane_j += ONE if past else ZERO
        skipped = seen if past else skipped
    j = (lane_j << _SIX) + select_bit(buckets[h + lane_j] & ~bit_in(kind, lane_j, i), k - skipped)
    return f, i, j, h, product >> _SIGN


@compiled(forceinline=True)
def same(kind: SlotKind, x: Words, f: np.uint64, i: np.uint64, j: np.uint64) -> bool:
    """Return whether two slots have the same factor f."""
    return equal(kind.ring, factor_at(kind, x, f, i), factor_at(kind, x, f, j))


@compiled(forceinline=True)
def meets_another(
    kind: SlotKind,
    x: Words,
    buckets: Words,
    g: np.uint64,
    e: np.uint64,
    i: np.uint64,
    j: np.uint64,
    left: Value,
    right: Value,
    h: np.uint64,
) -> bool:
    """Return whether term i, whose factor g is now `left`, or j, whose e is `right`, shares two factors with another.

    `h` is the bucket of the third factor. Factors are compared only if some slot shares two buckets with a changed
    slot. Of two terms that shared both unchanged factors before, as their sum did not fit, none is seen here.
    """
    hg, he = bucket_at(kind, g, left), bucket_at(kind, e, right)
    hi, hj = bucket_at(kind, e, factor_at(kind, x, e, i)), bucket_at(kind, g, factor_at(kind, x, g, j))
    near = ZERO
    for q in range(len(kind.lanes)):
        p = np.uint64(q)
        here = buckets[h + p]
        near |= (buckets[hg + p] & (here | buckets[hi + p])) & ~bit_in(kind, p, i)
        near |= (buckets[he + p] & (here | buckets[hj + p])) & ~bit_in(kind, p, j)
    return near != ZERO and has_double(kind, x, i, j)


@compiled(forceinline=True)
def try_flip(kind: SlotKind, x: Words, buckets: Words, active: Words, guard: Words, draw: np.uint64) -> int:
    """Try a flip by one draw: a b c + s a b' c' = a (b + t b') c + s a b' (c' - s t c), t = 1 or -1.

    The draw selects t; if its result leaves the ring the other t is tried, and if both do the event is
    NO_PARTNER. Over GF(2) there is only one t.
    """
    scalar_code()
    event = NONE
    total = count_active(kind, active)
    if total != ZERO:
        f, i, j, h, coin = choose(kind, x, buckets, active, draw, total)
        event = NO_PARTNER
        if same(kind, x, f, i, j):
            ring = kind.ring
            g, e = (NEXT >> (f + f)) & _THREE, (LAST >> (f + f)) & _THREE
            bi, bj = factor_at(kind, x, g, i), factor_at(kind, x, g, j)
            ci, cj = factor_at(kind, x, e, i), factor_at(kind, x, e, j)
            t = sign_from(ring, coin)
            # The second sum needs the sign opposite to that of the first, to leave the tensor unchanged.
            against = opposite(ring, term_sign(kind, x, i) ^ term_sign(kind, x, j))
            bu, bd, clash_b = added(ring, bi, turned(ring, bj, t))
            cu, cd, clash_c = added(ring, cj, turned(ring, ci, t ^ against))
            if clash_b | clash_c != ZERO:
                bu, bd, clash_b = added(ring, bi, turned(ring, bj, ~t))
                cu, cd, clash_c = added(ring, cj, turned(ring, ci, ~t ^ against))
            if clash_b | clash_c == ZERO:
                change = 0
                if len(kind.guard) > 1:
                    supports_b = bi[0] | bi[1], bj[0] | bj[1], bu | bd
                    supports_c = ci[0] | ci[1], cj[0] | cj[1], cu | cd
                    a = factor_at(kind, x, f, i)
                    change = change_of_full(guard, f, g, e, supports_b, supports_c, a[0] | a[1])
                if len(kind.guard) > 1 and not allowed(guard, draw, change, bu | bd, cu | cd):
                    event = REJECTED
                else:
                    turn_i, turn_j = sign_of(ring, (bu, bd)), sign_of(ring, (cu, cd))
                    turn_term(kind, x, i, turn_i)
                    turn_term(kind, x, j, turn_j)
                    left, right = turned(ring, (bu, bd), turn_i), turned(ring, (cu, cd), turn_j)
                    place(kind, x, buckets, active, g, i, left)
                    place(kind, x, buckets, active, e, j, right)
                    event = FLIP
                    if len(kind.guard) > 1:
                        guard[FULL] += np.uint64(change)
                        event = GAIN if change < 0 else FLIP
                    zero = left[0] == ZERO or right[0] == ZERO
                    if zero or meets_another(kind, x, buckets, g, e, i, j, left, right, h):
                        event = REDUCIBLE
    return event


@compiled(internal=True)
def has_double(kind: SlotKind, x: Words, i: np.uint64, j: np.uint64) -> bool:
    """Return whether another term has two factors in common with term i or with term j."""
    found = False
    for t in range(64 * len(kind.lanes)):
        for changed in (i, j):
            shared = 0
            for f in range(3):
                if x[place_of(kind, np.uint64(f), np.uint64(t))] != ZERO:
                    shared += same(kind, x, np.uint64(f), np.uint64(t), changed)
            found |= shared >= 2 and np.uint64(t) != changed
    return found


@compiled(internal=True)
def shrink(s: WordArena, t: int) -> bool:
    """Drop a term with a zero factor; return False: no other pass is needed."""
    slots = 64 * len(s.live)
    if s.x[t] == ZERO or s.x[slots + t] == ZERO or s.x[2 * slots + t] == ZERO:
        drop(s, t)
    return False


@compiled
def reduce_dependent(s: WordArena) -> bool:
    """Remove one term whose factor is a sum of those of other terms that share another factor with it.

    For terms a b_t c_t with b_j = sum of some b_t, c_j is added to those c_t and term j is dropped.
    Of groups of more than 64 terms the first 64 are used. Returns whether there was such a term.
    """
    slots = 64 * len(s.kind.lanes)
    members, rows, masks = s.scratch[0], s.scratch[1], s.scratch[2]
    for f in range(3):
        for first in range(slots):
            value = word_at(s, np.uint64(f), np.uint64(first))
            if value == ZERO or crowd(s, np.uint64(f), value) < _THREE:
                continue
            size = 0
            for t in range(slots):
                if word_at(s, np.uint64(f), np.uint64(t)) == value and size < 64:
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
                    word, mask = word_at(s, np.uint64(g), members[t]), ONE << np.uint64(t)
                    for q in range(t):
                        if word ^ rows[q] < word:
                            word ^= rows[q]
                            mask ^= masks[q]
                    if word == ZERO:
                        absorb(s, 3 - f - g, members, t, mask)
                        return True
                    rows[t] = word
                    masks[t] = mask
    return False


@compiled(internal=True)
def no_dependence(s: WordArena) -> bool:
    """Return False: the walk has no reductions by dependence."""
    return False


@compiled(internal=True)
def word_at(s: WordArena, f: np.uint64, slot: np.uint64) -> np.uint64:
    """Return factor f of a slot, 0 if it is free."""
    return s.x[place_of(s.kind, f, slot)]


@compiled(internal=True)
def crowd(s: WordArena, f: np.uint64, value: np.uint64) -> np.uint64:
    """Return the number of slots in the bucket of a factor value."""
    h, total = bucket_at(s.kind, f, (value, ZERO)), ZERO
    for q in range(len(s.kind.lanes)):
        total += popcount(s.buckets[h + np.uint64(q)])
    return total


@compiled(internal=True)
def absorb(s: WordArena, e: int, members: Words, last: int, mask: np.uint64) -> None:
    """Add factor e of members[last] to that of every other member in the mask, and drop members[last]."""
    value = word_at(s, np.uint64(e), members[last])
    for t in range(last):
        if (mask >> np.uint64(t)) & ONE != ZERO:
            put(s, e, np.int64(members[t]), (word_at(s, np.uint64(e), members[t]) ^ value, ZERO))
    drop(s, np.int64(members[last]))
    count_rank(s)

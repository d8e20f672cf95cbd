"""Moves of the flip graph of schemes invariant under an involution, over GF(2), compiled: flip, reduce, plus, on pairs.

A slot is a pair of a term and its image, or a term that is its own image, in the layout of
`involution.mirrored_layout`, where the involution reverses the bits: "reversal" below. Terms with factors that are
equal up to reversal flip, and their reversals at the same time. A flip with a pair adds both images to a term that is
its own reversal, so that this remains true. Two terms of a pair that become equal cancel; if only one factor of a pair
is not its own reversal, one term with the sum of both images replaces the pair, unless `SlotKind.whole` has length 2.
`tests/search/pair_reference.py` is the equivalent in plain Python.
"""

from __future__ import annotations

import numpy as np

from ..terms.bits import ONE, compiled, next_draw, reverse_bits, scalar_code
from ..terms.packed import Words
from ..terms.rings import ZERO
from .moves import FLIP, NO_PARTNER, NONE, REDUCIBLE, choose, count_active
from .orbit_moves import alike, odd_one, taken
from .policy import PLUS_TRIES
from .slots import (
    RANK,
    REDUCTIONS,
    SlotKind,
    WordArena,
    bit_in,
    bucket_at,
    clear,
    free_slot,
    is_live,
    pick,
    place,
    set_live,
    set_out,
)

_TWO, _THREE, _HALF, _LOW, _TWELVE = (np.uint64(n) for n in (2, 3, 32, 0xFFFFFFFF, 12))
_NEXT, _LAST = np.uint64(0b001001), np.uint64(0b010010)


@compiled(forceinline=True)
def try_flip(kind: SlotKind, x: Words, buckets: Words, active: Words, guard: Words, draw: np.uint64) -> int:
    """Try a flip of two pairs, the second reversed if its factor is, by one draw."""
    scalar_code()
    event = NONE
    total = count_active(kind, active)
    if total != ZERO:
        f, i, j, _, coin = choose(kind, x, buckets, active, draw, total)
        event = NO_PARTNER
        slots = np.uint64(64 * len(kind.lanes))
        g, e = (_NEXT >> (f + f)) & _THREE, (_LAST >> (f + f)) & _THREE
        a, aj = x[f * slots + i], x[f * slots + j]
        equal, mirror = a == aj, a == reverse_bits(aj)
        if equal or mirror:
            gi, ei, gj, ej = g * slots + i, e * slots + i, g * slots + j, e * slots + j
            one, two = alike(kind, a, x[gi], x[ei]), alike(kind, aj, x[gj], x[ej])
            b, c = x[gj], x[ei]
            if mirror and (not equal or coin & ONE != ZERO):
                b, c = reverse_bits(b), reverse_bits(c)
            left, right = x[gi] ^ taken(kind, b, one, two), x[ej] ^ taken(kind, c, two, one)
            # A pair of equal terms cancels.
            if not one and alike(kind, a, left, x[ei]):
                left = ZERO
            if not two and alike(kind, aj, x[gj], right):
                right = ZERO
            place(kind, x, buckets, active, g, i, (left, ZERO))
            place(kind, x, buckets, active, e, j, (right, ZERO))
            event = FLIP
            if left == ZERO or right == ZERO or meets(kind, x, buckets, g, i) or meets(kind, x, buckets, e, j):
                event = REDUCIBLE
    return event


@compiled(forceinline=True)
def meets(kind: SlotKind, x: Words, buckets: Words, changed: np.uint64, slot: np.uint64) -> bool:
    """Return whether a pair may equal another in the changed factor and a second one, or can become a single term.

    Buckets are compared, not values, so True may be wrong.
    """
    slots = np.uint64(64 * len(kind.lanes))
    p, q = (_NEXT >> (changed + changed)) & _THREE, (_LAST >> (changed + changed)) & _THREE
    a, b, c = x[changed * slots + slot], x[p * slots + slot], x[q * slots + slot]
    ha = bucket_at(kind, changed, (a, ZERO))
    hb, hc = bucket_at(kind, p, (b, ZERO)), bucket_at(kind, q, (c, ZERO))
    near = ZERO
    for n in range(len(kind.lanes)):
        lane = np.uint64(n)
        near |= buckets[ha + lane] & (buckets[hb + lane] | buckets[hc + lane]) & ~bit_in(kind, lane, slot)
    return near != ZERO or (len(kind.whole) == 1 and odd_one(kind, a, b, c) < 3)


@compiled
def put(s: WordArena, f: int, slot: int, value: np.uint64) -> None:
    """Set a factor, and update buckets and active sets."""
    place(s.kind, s.x, s.buckets, s.active, np.uint64(f), np.uint64(slot), (value, ZERO))


@compiled
def drop(s: WordArena, slot: int) -> None:
    """Free a slot."""
    for f in range(3):
        put(s, f, slot, ZERO)
    set_live(s.live, np.uint64(slot), False)


@compiled
def is_alike(s: WordArena, slot: int) -> bool:
    """Return whether the term of a slot is its own reversal."""
    slots = 64 * len(s.live)
    return alike(s.kind, s.x[slot], s.x[slots + slot], s.x[2 * slots + slot])


@compiled
def count_rank(s: WordArena) -> None:
    """Recount the terms."""
    total = 0
    for slot in range(64 * len(s.live)):
        if is_live(s.live, np.uint64(slot)):
            total += 1 if is_alike(s, slot) else 2
    s.counters[RANK] = total


@compiled
def load(s: WordArena, terms: Words) -> None:
    """Replace all pairs by others, in the layout of `WordArena.x`."""
    clear(s)
    slots = 64 * len(s.live)
    for slot in range(slots):
        if terms[slot] != ZERO:
            for f in range(3):
                put(s, f, slot, terms[f * slots + slot])
            set_live(s.live, np.uint64(slot), True)
    count_rank(s)
    set_out(s)


@compiled
def shrink(s: WordArena, t: int) -> None:
    """Drop a pair with a zero factor, or replace it by one term where the policy allows it."""
    slots = 64 * len(s.live)
    a, b, c = s.x[t], s.x[slots + t], s.x[2 * slots + t]
    odd = 3 if len(s.kind.whole) == 2 else odd_one(s.kind, a, b, c)
    if a == ZERO or b == ZERO or c == ZERO:
        drop(s, t)
        s.counters[REDUCTIONS] += 1
    elif odd < 3:
        value = s.x[odd * slots + t]
        put(s, odd, t, value ^ reverse_bits(value))
        s.counters[REDUCTIONS] += 1


@compiled
def merge(s: WordArena, t: int, u: int) -> bool:
    """Merge two pairs that share two factors, the second as it is or reversed; return whether they do."""
    slots = 64 * len(s.live)
    for reverse in range(2):
        equal, odd, value = 0, 2, ZERO
        for f in range(3):
            other = s.x[f * slots + u]
            if reverse == 1:
                other = reverse_bits(other)
            if s.x[f * slots + t] == other:
                equal += 1
            else:
                odd = f
        if equal >= 2:
            value = s.x[odd * slots + u]
            if reverse == 1:
                value = reverse_bits(value)
            paired = not is_alike(s, t)
            put(s, odd, t, s.x[odd * slots + t] ^ value)
            if paired and is_alike(s, t):
                put(s, 0, t, ZERO)
            drop(s, u)
            s.counters[REDUCTIONS] += 1
            return True
    return False


@compiled
def reduce(s: WordArena) -> None:
    """Replace pairs by single terms where possible, and merge those that share two factors."""
    slots = 64 * len(s.live)
    again = True
    while again:
        again = False
        for t in range(slots):
            if is_live(s.live, np.uint64(t)):
                shrink(s, t)
        for t in range(slots):
            for u in range(t + 1, slots if is_live(s.live, np.uint64(t)) else 0):
                if is_live(s.live, np.uint64(u)) and is_alike(s, t) == is_alike(s, u):
                    again |= merge(s, t, u)
    count_rank(s)


@compiled
def plus(s: WordArena) -> bool:
    """Make a plus transition: split two pairs into three; return False if no pair allows it.

    a b c + a' b' c' = a (b + b') c + a b' (c + c') + (a + a') b' c' with the second pair reversed, and the roles
    permuted, by the draw. Both must then differ in all factors.
    """
    slots = 64 * len(s.live)
    slot = np.int64(free_slot(s.live))
    if slot == slots:
        return False
    x = s.x
    for _ in range(PLUS_TRIES):
        draw = next_draw(s.rng[0])
        i = np.int64(pick(s.live, draw >> _HALF))
        draw = next_draw(draw)
        j = np.int64(pick(s.live, draw >> _HALF))
        s.rng[0] = draw
        choice = np.int64(((draw & _LOW) * _TWELVE) >> _HALF)
        f = choice % 6 // 2
        g = (f + 1 + choice % 2) % 3
        e = 3 - f - g
        a, b, c = x[f * slots + j], x[g * slots + j], x[e * slots + j]
        if choice >= 6:
            a, b, c = reverse_bits(a), reverse_bits(b), reverse_bits(c)
        paired = not is_alike(s, i)
        equal = i == j or is_alike(s, i) != is_alike(s, j)
        equal |= a == x[f * slots + i] or b == x[g * slots + i] or c == x[e * slots + i]
        if equal:
            continue
        first, last = x[f * slots + i], x[e * slots + i]
        put(s, g, i, x[g * slots + i] ^ b)
        # The second pair is stored as it was drawn: reversed.
        put(s, f, j, first)
        put(s, g, j, b)
        put(s, e, j, last ^ c)
        put(s, f, slot, first ^ a)
        put(s, g, slot, b)
        put(s, e, slot, c)
        set_live(s.live, np.uint64(slot), True)
        if paired:
            for changed in (i, j, slot):
                if is_alike(s, changed):
                    put(s, 0, changed, ZERO)
        count_rank(s)
        return True
    return False

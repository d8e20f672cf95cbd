"""Moves of the flip graph, compiled for every ring: flip, reduce, plus.

A move whose result leaves the ring (over the integers, has a coefficient outside {-1, 0, 1}) is rejected.
Sources: Kauers and Moosbauer, "Flip graphs for matrix multiplication" (arXiv 2212.01175) for flips
and reductions; Arai, Ichikawa and Hukushima, "Adaptive flip graph algorithm" (arXiv 2312.16960) for
the plus transition. `tests/search/flip_reference.py` is the equivalent in plain Python.
"""

from __future__ import annotations

import numpy as np

from ..terms.bits import ONE, compiled, next_draw, popcount, scalar_code, select_bit
from ..terms.packed import Words
from ..terms.rings import GF2, ZERO, Value, added, opposite, sign_from, sign_of, turned
from .constraints import FULL, NONZEROS, allowed, change_of_full, half_in
from .policy import PLUS_TRIES
from .slots import (
    RANK,
    REDUCTIONS,
    SlotKind,
    WordArena,
    bit_in,
    bucket_at,
    clear,
    factor_at,
    free_slot,
    is_live,
    pick,
    place,
    place_of,
    set_live,
    set_out,
    term_sign,
    turn_term,
)

NONE, NO_PARTNER, REJECTED, FLIP, GAIN, REDUCIBLE = range(6)
"""Events of `try_flip`: no active slot; an unequal partner or a sum outside the ring; a flip rejected by the
guard; a flip; a flip that reduces the number of full products; a flip after which terms can be reduced."""

_TWO, _THREE, _SIX, _SIGN, _HALF, _LOW = (np.uint64(n) for n in (2, 3, 6, 31, 32, 0xFFFFFFFF))
_NEXT, _LAST = np.uint64(0b001001), np.uint64(0b010010)


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
    (plus, minus), (other, less) = factor_at(kind, x, f, i), factor_at(kind, x, f, j)
    return plus == other if len(kind.ring) == GF2 else (plus ^ other) | (minus ^ less) == ZERO


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

    `h` is the bucket of the third factor. Factors are compared only if some slot shares two buckets with
    a changed slot.
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
            g, e = (_NEXT >> (f + f)) & _THREE, (_LAST >> (f + f)) & _THREE
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


@compiled
def has_double(kind: SlotKind, x: Words, i: np.uint64, j: np.uint64) -> bool:
    """Return whether another term has two factors in common with term i or with term j."""
    found = False
    for t in range(64 * len(kind.lanes)):
        for changed in (i, j):
            equal = 0
            for f in range(3):
                if x[place_of(kind, np.uint64(f), np.uint64(t))] != ZERO:
                    equal += same(kind, x, np.uint64(f), np.uint64(t), changed)
            found |= equal >= 2 and np.uint64(t) != changed
    return found


@compiled
def put(s: WordArena, f: np.uint64, slot: np.uint64, value: Value) -> None:
    """Set factor f of a term to a value that need not be canonical; zero removes it."""
    turn = sign_of(s.kind.ring, value)
    place(s.kind, s.x, s.buckets, s.active, f, slot, turned(s.kind.ring, value, turn))
    turn_term(s.kind, s.x, slot, turn)


@compiled
def drop(s: WordArena, slot: np.uint64) -> None:
    """Free a slot."""
    for f in range(3):
        put(s, np.uint64(f), slot, (ZERO, ZERO))
    turn_term(s.kind, s.x, slot, term_sign(s.kind, s.x, slot))
    set_live(s.live, slot, False)
    s.counters[RANK] -= 1


@compiled
def load(s: WordArena, terms: Words) -> None:
    """Replace all terms by others, in the layout of `WordArena.x`."""
    clear(s)
    for t in range(64 * len(s.kind.lanes)):
        slot = np.uint64(t)
        if terms[t] != ZERO:
            for q in range(3):
                f = np.uint64(q)
                place(s.kind, s.x, s.buckets, s.active, f, slot, factor_at(s.kind, terms, f, slot))
            turn_term(s.kind, s.x, slot, term_sign(s.kind, terms, slot))
            set_live(s.live, slot, True)
            s.counters[RANK] += 1
    set_out(s)


@compiled
def count_full(s: WordArena) -> None:
    """Recount the full products."""
    if len(s.kind.guard) > 1:
        s.guard[FULL] = ZERO
        for t in range(64 * len(s.kind.lanes)):
            half = False
            for q in range(3):
                value = factor_at(s.kind, s.x, np.uint64(q), np.uint64(t))
                half |= half_in(s.guard, np.uint64(q), value[0] | value[1])
            s.guard[FULL] += ZERO if half else ONE


@compiled(forceinline=True)
def fits(s: WordArena, plus: np.uint64, minus: np.uint64, clash: np.uint64) -> bool:
    """Return whether a sum is allowed as a factor."""
    return clash == ZERO and (len(s.kind.guard) == 1 or popcount(plus | minus) <= s.guard[NONZEROS])


@compiled
def reduce(s: WordArena) -> None:
    """Drop terms with a zero factor and merge pairs that share two factors, where the sum stays in the ring."""
    slots = 64 * len(s.kind.lanes)
    kind, x = s.kind, s.x
    again = True
    while again:
        again = False
        for t in range(slots):
            i = np.uint64(t)
            if is_live(s.live, i) and (x[t] == ZERO or x[slots + t] == ZERO or x[2 * slots + t] == ZERO):
                drop(s, i)
                s.counters[REDUCTIONS] += 1
        for t in range(slots):
            i = np.uint64(t)
            for u in range(t + 1, slots if is_live(s.live, i) else 0):
                j = np.uint64(u)
                same_u, same_v, same_w = (
                    same(kind, x, np.uint64(0), i, j),
                    same(kind, x, np.uint64(1), i, j),
                    same(kind, x, np.uint64(2), i, j),
                )
                merging = (same_u and same_v) or (same_u and same_w) or (same_v and same_w)
                if merging and is_live(s.live, j):
                    f = np.uint64(0 if not same_u else 1 if not same_v else 2)
                    other = turned(kind.ring, factor_at(kind, x, f, j), term_sign(kind, x, i) ^ term_sign(kind, x, j))
                    plus, minus, clash = added(kind.ring, factor_at(kind, x, f, i), other)
                    if fits(s, plus, minus, clash):
                        put(s, f, i, (plus, minus))
                        drop(s, j)
                        s.counters[REDUCTIONS] += 1
                        again = True


@compiled
def plus(s: WordArena) -> bool:
    """Make a plus transition: split two terms into three, which have other flips; return False if no pair allows it.

    a b c + a' b' c' = a (b + p b') c + a b' (q c' - p c) + (a' - q a) b' c' with signs p and q; the draw
    selects signs and the roles of the factors. The terms must differ in all factors, up to sign.
    """
    slot = free_slot(s.live)
    if slot == np.uint64(64 * len(s.live)) or s.counters[RANK] < 2:
        return False
    kind, ring, x = s.kind, s.kind.ring, s.x
    for _ in range(PLUS_TRIES):
        draw = next_draw(s.rng[0])
        i = pick(s.live, draw >> _HALF)
        draw = next_draw(draw)
        j = pick(s.live, draw >> _HALF)
        s.rng[0] = draw
        equal = False
        for q in range(3):
            equal |= same(kind, x, np.uint64(q), i, j)
        if equal:
            continue
        turn = ((draw & _LOW) * _SIX) >> _HALF
        f = turn >> ONE
        g = (f + (ONE if turn & ONE == ZERO else _TWO)) % _THREE
        e = _THREE - f - g
        sign_j = term_sign(kind, x, j)
        ai, aj = factor_at(kind, x, f, i), factor_at(kind, x, f, j)
        bi, bj = factor_at(kind, x, g, i), factor_at(kind, x, g, j)
        ci = turned(ring, factor_at(kind, x, e, i), term_sign(kind, x, i))
        cj = turned(ring, factor_at(kind, x, e, j), sign_j)
        for n in range(4):
            signs = draw ^ np.uint64(n)
            p, q = sign_from(ring, signs), sign_from(ring, signs >> ONE)
            bu, bd, clash_b = added(ring, bi, turned(ring, bj, p))
            cu, cd, clash_c = added(ring, turned(ring, cj, q), turned(ring, ci, opposite(ring, p)))
            au, ad, clash_a = added(ring, aj, turned(ring, ai, opposite(ring, q)))
            if fits(s, bu, bd, clash_b) and fits(s, cu, cd, clash_c) and fits(s, au, ad, clash_a):
                put(s, g, i, (bu, bd))
                turn_term(kind, x, j, sign_j)
                put(s, e, j, (cu, cd))
                put(s, f, j, ai)
                put(s, f, slot, (au, ad))
                put(s, g, slot, bj)
                put(s, e, slot, cj)
                set_live(s.live, slot, True)
                s.counters[RANK] += 1
                return True
    return False

"""The moves of the flip graph over {-1, 0, 1}, compiled: flip, reduce, plus.

A factor is packed as pos | neg << 32, so its negative is a rotation by 32, and a term is a sign and
three canonical factors: equal up to sign means equal. A move whose result would have a coefficient
beyond 1 is not made. `ternary_reference.py` says the same in plain Python.
"""

from __future__ import annotations

import numpy as np

from .arena import RANK, REDUCTIONS, ZERO, Arena, add, drop, free_slot, pick, place, place_of, put, value_at
from .bits import ONE, compiled, next_draw, scalar_code
from .moves import FLIP, HIT, MISS, NONE, choose, count_active, is_live, meets_another
from .packed import Words
from .policy import PLUS_TRIES

_TWO, _THREE, _FIVE, _SIX, _LOW6 = np.uint64(2), np.uint64(3), np.uint64(5), np.uint64(6), np.uint64(63)
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_NEXT, _LAST = np.uint64(0b001001), np.uint64(0b010010)


@compiled(forceinline=True)
def turned(value: np.uint64, turn: np.uint64) -> np.uint64:
    """The factor, or its negative where `turn` is 32 and not 0."""
    return (value << turn) | (value >> ((ZERO - turn) & _LOW6))


@compiled(forceinline=True)
def total_of(left: np.uint64, right: np.uint64) -> np.uint64:
    """The sum of two factors, which must not clash: `left & right` is empty."""
    either = left | right
    return either & ~((either << _HALF) | (either >> _HALF))


@compiled(forceinline=True)
def turn_of(value: np.uint64) -> np.uint64:
    """32 where the lowest coefficient is -1, else 0."""
    minus = value >> _HALF
    support = (value | minus) & _LOW
    return np.uint64(minus & support & (ZERO - support) != ZERO) << _FIVE


@compiled(forceinline=True)
def try_flip(
    lanes: tuple[int, ...], ring: tuple[int, ...], x: Words, buckets: Words, active: Words, draw: np.uint64
) -> int:
    """One flip from one draw: a b c + s a b' c' = a (b + t b') c + s a b' (c' - s t c), t = 1 or -1.

    The draw chooses t; the other is taken where that one clashes, and where both do it is a miss.
    """
    scalar_code()
    event = NONE
    total = count_active(lanes, ring, active)
    if total != ZERO:
        f, i, j, h, coin = choose(lanes, ring, x, buckets, active, draw, total)
        event = MISS
        if x[place_of(lanes, f, j)] == x[place_of(lanes, f, i)]:
            g, e = (_NEXT >> (f + f)) & _THREE, (_LAST >> (f + f)) & _THREE
            sign_i, sign_j = place_of(lanes, _THREE, i), place_of(lanes, _THREE, j)
            bi, bj = x[place_of(lanes, g, i)], x[place_of(lanes, g, j)]
            ci, cj = x[place_of(lanes, e, i)], x[place_of(lanes, e, j)]
            t = coin << _FIVE
            # Adding a term's other factor with the sign against that of the first sum keeps the tensor.
            against = _HALF ^ x[sign_i] ^ x[sign_j]
            clash = (bi & turned(bj, t)) | (cj & turned(ci, t ^ against))
            clash_too = (bi & turned(bj, t ^ _HALF)) | (cj & turned(ci, t ^ against ^ _HALF))
            if clash == ZERO or clash_too == ZERO:
                t ^= np.uint64(clash != ZERO) << _FIVE
                left, right = total_of(bi, turned(bj, t)), total_of(cj, turned(ci, t ^ against))
                turn_left, turn_right = turn_of(left), turn_of(right)
                x[sign_i] ^= turn_left
                x[sign_j] ^= turn_right
                left, right = turned(left, turn_left), turned(right, turn_right)
                place(lanes, x, buckets, active, g, i, left)
                place(lanes, x, buckets, active, e, j, right)
                event = FLIP
                if left == ZERO or right == ZERO or meets_another(lanes, x, buckets, g, e, i, j, left, right, h):
                    event = HIT
    return event


@compiled
def settle(s: Arena) -> None:
    """Drop terms with a zero factor and merge pairs that share two factors where the sums do not clash."""
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
                    mine = value_at(s, f, t)
                    other = turned(value_at(s, f, u), x[3 * slots + t] ^ x[3 * slots + u])
                    if mine & other == ZERO:
                        set_factor(s, f, np.uint64(t), total_of(mine, other))
                        drop(s, np.uint64(u))
                        s.tally[REDUCTIONS] += 1
                        again = True


@compiled
def set_factor(s: Arena, f: np.uint64, slot: np.uint64, value: np.uint64) -> None:
    """Set factor f of a term to a value that need not be canonical."""
    turn = turn_of(value)
    put(s, f, slot, turned(value, turn))
    s.x[place_of(s.lanes, _THREE, slot)] ^= turn


@compiled
def plus(s: Arena) -> bool:
    """Two terms become three that a flip path may lead elsewhere from; False where no pair allows it.

    a b c + a' b' c' = a (b + p b') c + a b' (q c' - p c) + (a' - q a) b' c' with signs p and q, signs
    and roles of the factors by the draw. Both terms must differ in all factors, up to sign.
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
        turn = ((draw & _LOW) * _SIX) >> _HALF
        f = turn >> ONE
        g = (f + (ONE if turn & ONE == ZERO else _TWO)) % _THREE
        e = _THREE - f - g
        sign_i, sign_j = s.x[place_of(s.lanes, _THREE, i)], s.x[place_of(s.lanes, _THREE, j)]
        ai, aj = value_at(s, f, i), value_at(s, f, j)
        bi, bj = value_at(s, g, i), value_at(s, g, j)
        ci, cj = turned(value_at(s, e, i), sign_i), turned(value_at(s, e, j), sign_j)
        for n in range(4):
            signs = draw ^ np.uint64(n)
            p, q = (signs & ONE) << _FIVE, ((signs >> ONE) & ONE) << _FIVE
            b, c, a = turned(bj, p), turned(ci, p ^ _HALF), turned(ai, q ^ _HALF)
            if (bi & b) | (turned(cj, q) & c) | (aj & a) == ZERO:
                set_factor(s, g, i, total_of(bi, b))
                s.x[place_of(s.lanes, _THREE, j)] = ZERO
                set_factor(s, e, j, total_of(turned(cj, q), c))
                put(s, f, j, ai)
                third = s.scratch[0]
                third[f], third[g], third[e] = ONE, bj, turned(cj, sign_j)
                add(s, slot, third[0], third[1], third[2])
                s.x[place_of(s.lanes, _THREE, slot)] = sign_j
                set_factor(s, f, slot, total_of(aj, a))
                return True
    return False

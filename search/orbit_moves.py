"""The moves of the symmetric flip graph over GF(2), compiled: flip, reduce, plus, three terms at a time.

The three matrices of an orbit are nodes p slots + s, p = 0, 1, 2, of one family: equal matrices
flip whatever their places are, since an orbit can be turned. Bits of slot s in place p stand in
word p L + s // 64 of a set, L words a place, so an arena with 3 L lanes and one factor holds them.
Cubes stand behind the nodes in `x` and never move. `orbit_reference.py` says the same in plain Python.
"""

from __future__ import annotations

import numpy as np

from .arena import MISSES, RANK, REDUCTIONS, SINCE, TRAPPED, WALK_BEST, WALK_STEPS, ZERO, Arena, bucket_at, pick, place
from .bits import ONE, compiled, first_bit, next_draw, popcount, scalar_code
from .moves import FLIP, HIT, MISS, NONE, choose, count_active, is_live
from .packed import Words
from .policy import PLUS_TRIES

MAX_CUBES = 64
"""Cubes that a walk can hold."""

_TWO, _THREE, _SIX, _HALF, _LOW = (np.uint64(n) for n in (2, 3, 6, 32, 0xFFFFFFFF))


@compiled(forceinline=True)
def following(lanes: tuple[int, ...], node: np.uint64) -> np.uint64:
    """The node of the next place in the same orbit."""
    slots = np.uint64(64 * (len(lanes) // 3))
    after = node + slots
    return after - _THREE * slots if after >= _THREE * slots else after


@compiled(forceinline=True)
def try_flip(
    lanes: tuple[int, ...], ring: tuple[int, ...], x: Words, buckets: Words, active: Words, draw: np.uint64
) -> int:
    """One flip of two orbits, turned so that the equal matrices stand first, from one draw."""
    scalar_code()
    event = NONE
    total = count_active(lanes, ring, active)
    if total != ZERO:
        _, i, j, _, _ = choose(lanes, ring, x, buckets, active, draw, total)
        event = MISS
        slots = np.uint64(64 * (len(lanes) // 3))
        if x[i] == x[j] and i % slots != j % slots:
            gi, gj = following(lanes, i), following(lanes, j)
            ei, ej = following(lanes, gi), following(lanes, gj)
            left, right = x[gi] ^ x[gj], x[ej] ^ x[ei]
            place(lanes, x, buckets, active, ZERO, gi, left)
            place(lanes, x, buckets, active, ZERO, ej, right)
            event = FLIP
            if left == ZERO or right == ZERO or meets(lanes, x, buckets, gi) or meets(lanes, x, buckets, ej):
                event = HIT
    return event


@compiled(forceinline=True)
def meets(lanes: tuple[int, ...], x: Words, buckets: Words, node: np.uint64) -> bool:
    """Whether an orbit may agree with this one in the changed node and another, or this one be a cube."""
    width = len(lanes) // 3
    after = following(lanes, node)
    last = following(lanes, after)
    h, ha, hl = bucket_at(lanes, ZERO, x[node]), bucket_at(lanes, ZERO, x[after]), bucket_at(lanes, ZERO, x[last])
    own = node % np.uint64(64 * width)
    near = ZERO
    for p in range(3):
        for q in range(width):
            here, then, before = (
                np.uint64(p * width + q),
                np.uint64((p + 1) % 3 * width + q),
                np.uint64((p + 2) % 3 * width + q),
            )
            met = buckets[h + here] & (buckets[ha + then] | buckets[hl + before])
            near |= met & ~(np.uint64(np.uint64(q) == own >> _SIX) << (own & np.uint64(63)))
    return near != ZERO or (x[node] == x[after] and x[node] == x[last])


@compiled
def put_node(s: Arena, node: int, value: np.uint64) -> None:
    """Set a node, and bring buckets and active sets up to date."""
    place(s.lanes, s.x, s.buckets, s.active, ZERO, np.uint64(node), value)


@compiled
def drop_orbit(s: Arena, slot: int) -> None:
    """Free a slot."""
    slots = 64 * len(s.live)
    for p in range(3):
        put_node(s, p * slots + slot, ZERO)
    s.live[slot >> 6] &= ~(ONE << np.uint64(slot & 63))
    s.tally[RANK] -= 3


@compiled
def add_orbit(s: Arena, slot: int, a: np.uint64, b: np.uint64, c: np.uint64) -> None:
    """Put an orbit into a free slot."""
    slots = 64 * len(s.live)
    put_node(s, slot, a)
    put_node(s, slots + slot, b)
    put_node(s, 2 * slots + slot, c)
    s.live[slot >> 6] |= ONE << np.uint64(slot & 63)
    s.tally[RANK] += 3


@compiled
def toggle_cube(s: Arena, value: np.uint64) -> None:
    """Add a cube modulo 2: take it out if it is there. The caller sees to room."""
    first = 192 * len(s.live)
    free = -1
    for q in range(MAX_CUBES):
        if s.x[first + q] == value:
            s.x[first + q] = ZERO
            s.tally[RANK] -= 1
            return
        if s.x[first + q] == ZERO and free < 0:
            free = q
    s.x[first + free] = value
    s.tally[RANK] += 1


@compiled
def has_room(s: Arena) -> bool:
    """Whether a cube more can be held."""
    free = False
    for q in range(MAX_CUBES):
        free |= s.x[192 * len(s.live) + q] == ZERO
    return free


@compiled
def load(s: Arena, terms: Words) -> None:
    """Replace all orbits and cubes by others of the same number of slots."""
    s.buckets[:] = ZERO
    s.active[:] = ZERO
    s.live[:] = ZERO
    s.x[:] = ZERO
    s.tally[RANK] = 0
    slots = 64 * len(s.live)
    for slot in range(slots):
        if terms[slot] != ZERO:
            add_orbit(s, slot, terms[slot], terms[slots + slot], terms[2 * slots + slot])
    for q in range(MAX_CUBES):
        if terms[3 * slots + q] != ZERO:
            toggle_cube(s, terms[3 * slots + q])
    s.tally[WALK_BEST] = s.tally[RANK]
    s.tally[WALK_STEPS] = 0
    s.tally[TRAPPED] = 0
    s.tally[SINCE] = 0
    s.tally[MISSES] = 0


@compiled
def settle(s: Arena) -> None:
    """Drop orbits with a zero, make cubes of orbits of three equal matrices, merge orbits that share two."""
    slots = 64 * len(s.live)
    x = s.x
    again = True
    while again:
        again = False
        for t in range(slots):
            if is_live(s.live, np.uint64(t)):
                a, b, c = x[t], x[slots + t], x[2 * slots + t]
                if a == ZERO or b == ZERO or c == ZERO:
                    drop_orbit(s, t)
                    s.tally[REDUCTIONS] += 1
                elif a == b and a == c and has_room(s):
                    drop_orbit(s, t)
                    toggle_cube(s, a)
                    s.tally[REDUCTIONS] += 1
        for t in range(slots):
            for u in range(t + 1, slots if is_live(s.live, np.uint64(t)) else 0):
                for turn in range(3 if is_live(s.live, np.uint64(u)) else 0):
                    equal, odd = 0, 2
                    for p in range(3):
                        if x[p * slots + t] == x[(p + turn) % 3 * slots + u]:
                            equal += 1
                        else:
                            odd = p
                    if equal >= 2:
                        put_node(s, odd * slots + t, x[odd * slots + t] ^ x[(odd + turn) % 3 * slots + u])
                        drop_orbit(s, u)
                        s.tally[REDUCTIONS] += 1
                        again = True
                        break


@compiled
def free_orbit(s: Arena) -> int:
    """The lowest free slot, or -1."""
    for q in range(len(s.live)):
        if ~s.live[q] != ZERO:
            return 64 * q + int(first_bit(~s.live[q]))
    return -1


@compiled
def plus(s: Arena) -> bool:
    """Two orbits become three; False where no pair allows it.

    a b c + a' b' c' = a (b + b') c + a b' (c + c') + (a + a') b' c' with the second orbit turned and
    the roles permuted by the draw. Both must differ in all places then.
    """
    slots = 64 * len(s.live)
    slot = free_orbit(s)
    orbits = ZERO
    for q in range(len(s.live)):
        orbits += popcount(s.live[q])
    if slot < 0 or orbits < _TWO:
        return False
    x = s.x
    for _ in range(PLUS_TRIES):
        draw = next_draw(s.rng[0])
        i = np.int64(pick(s.live, draw >> _HALF))
        draw = next_draw(draw)
        j = np.int64(pick(s.live, draw >> _HALF))
        s.rng[0] = draw
        choice = np.int64(((draw & _LOW) * np.uint64(18)) >> _HALF)
        turn, f = choice // 6, choice % 6 // 2
        g = (f + 1 + choice % 2) % 3
        e = 3 - f - g
        equal = i == j
        for p in range(3):
            equal |= x[p * slots + i] == x[(p + turn) % 3 * slots + j]
        if equal:
            continue
        fj, gj, ej = (f + turn) % 3 * slots + j, (g + turn) % 3 * slots + j, (e + turn) % 3 * slots + j
        third = s.scratch[0]
        third[f], third[g], third[e] = x[f * slots + i] ^ x[fj], x[gj], x[ej]
        put_node(s, g * slots + i, x[g * slots + i] ^ x[gj])
        put_node(s, ej, x[e * slots + i] ^ x[ej])
        put_node(s, fj, x[f * slots + i])
        add_orbit(s, slot, third[0], third[1], third[2])
        return True
    return False

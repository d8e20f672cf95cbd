"""Flips of symmetric walks over GF(2), compiled: of whole orbits of a small group; see `elements` and `moves`.

Matrices of the same position flip if they are equal or reversals of each other, as every position has its own buckets;
with the cyclic shift equal matrices flip at any positions, since an orbit can be shifted.

A flip with an orbit that is not its own reversal adds both images to one that is, so that this remains true. Terms of
an orbit that become equal in pairs cancel. If only one matrix of an orbit is not its own reversal, an orbit with the
sum of both images replaces it, and one of three equal matrices becomes cubes; with `SlotKind.whole` of length 2 neither
happens, as in the walks of Moosbauer and Poole (arXiv 2502.04514).
"""

from __future__ import annotations

import numpy as np

from ..terms.bits import ONE, compiled, reverse_bits, scalar_code
from ..terms.rings import ZERO
from ..terms.words import Words
from .elements import alike, drop, put
from .flips import FLIP, LAST, NEXT, NO_PARTNER, NONE, REDUCIBLE, choose, count_active
from .slots import SlotKind, WordArena, bit_in, bucket_at, place, place_of

MAX_CUBES = 64
"""Maximum number of cubes of a walk."""

_THREE, _SIX = np.uint64(3), np.uint64(6)


@compiled(forceinline=True)
def mirrored(kind: SlotKind, value: np.uint64) -> np.uint64:
    """Return the matrix reversed in a walk with reversal, else unchanged."""
    return reverse_bits(value) if len(kind.turns) % 2 == 0 else value


@compiled(forceinline=True)
def taken(kind: SlotKind, value: np.uint64, mine: bool, other: bool) -> np.uint64:
    """Return the summand from another orbit's matrix: plus its reversal if only the first orbit is its own reversal.

    `mine` and `other`: whether the orbits are their own reversals.
    """
    return value ^ reverse_bits(value) if mine and not other else value


@compiled(forceinline=True)
def following(kind: SlotKind, f: np.uint64, i: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the factor and the index in its set of the matrix one position after that of index i, factor f."""
    if len(kind.turns) == 2:
        return (NEXT >> (f + f)) & _THREE, i
    nodes = np.uint64(64 * len(kind.lanes))
    after = i + nodes // _THREE
    return ZERO, after - nodes if after >= nodes else after


@compiled(forceinline=True)
def last_of(kind: SlotKind, f: np.uint64, after: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return those two positions after factor f, given the index of the matrix between."""
    return ((LAST >> (f + f)) & _THREE, after) if len(kind.turns) == 2 else following(kind, f, after)


@compiled(forceinline=True)
def try_flip(kind: SlotKind, x: Words, buckets: Words, active: Words, guard: Words, draw: np.uint64) -> int:
    """Try a flip of two orbits, shifted and reversed so that the equal matrices come first, by one draw."""
    scalar_code()
    event = NONE
    total = count_active(kind, active)
    if total != ZERO:
        f, i, j, _, coin = choose(kind, x, buckets, active, draw, total)
        f = f if len(kind.turns) == 2 else ZERO
        event = NO_PARTNER
        slots = np.uint64(64 * len(kind.lanes)) // _THREE
        a, aj = x[place_of(kind, f, i)], x[place_of(kind, f, j)]
        equal, reverse = a == aj, False
        if len(kind.turns) != 3 and a == reverse_bits(aj):
            reverse = not equal or coin & ONE != ZERO
            equal = True
        if equal and (len(kind.turns) == 2 or i % slots != j % slots):
            (g, gi), (_, gj) = following(kind, f, i), following(kind, f, j)
            (e, ei), (_, ej) = last_of(kind, f, gi), last_of(kind, f, gj)
            bi, bj = x[place_of(kind, g, gi)], x[place_of(kind, g, gj)]
            ci, cj = x[place_of(kind, e, ei)], x[place_of(kind, e, ej)]
            one, two = alike(kind, a, bi, ci), alike(kind, aj, bj, cj)
            b = mirrored(kind, bj) if reverse else bj
            c = mirrored(kind, ci) if reverse else ci
            left, right = bi ^ taken(kind, b, one, two), cj ^ taken(kind, c, two, one)
            # Terms of an orbit that are equal in pairs cancel: the orbit is zero.
            if not one and alike(kind, a, left, ci):
                left = ZERO
            if not two and alike(kind, aj, bj, right):
                right = ZERO
            place(kind, x, buckets, active, g, gi, (left, ZERO))
            place(kind, x, buckets, active, e, ej, (right, ZERO))
            event = FLIP
            if left == ZERO or right == ZERO or meets(kind, x, buckets, g, gi) or meets(kind, x, buckets, e, ej):
                event = REDUCIBLE
    return event


@compiled(forceinline=True)
def meets(kind: SlotKind, x: Words, buckets: Words, f: np.uint64, node: np.uint64) -> bool:
    """Return whether an orbit may equal another in the changed matrix and a second one, or can become a smaller one.

    Buckets are compared, not values, so True may be wrong.
    """
    g, after = following(kind, f, node)
    e, last = last_of(kind, f, after)
    a, b, c = x[place_of(kind, f, node)], x[place_of(kind, g, after)], x[place_of(kind, e, last)]
    h, ha, hl = bucket_at(kind, f, (a, ZERO)), bucket_at(kind, g, (b, ZERO)), bucket_at(kind, e, (c, ZERO))
    near = ZERO
    if len(kind.turns) == 2:
        for n in range(len(kind.lanes)):
            lane = np.uint64(n)
            near |= buckets[h + lane] & (buckets[ha + lane] | buckets[hl + lane]) & ~bit_in(kind, lane, node)
        return near != ZERO or (len(kind.whole) == 1 and odd_one(kind, a, b, c) < 3)
    width = len(kind.lanes) // 3
    own = node % np.uint64(64 * width)
    for p in range(3):
        for q in range(width):
            here, then, before = (
                np.uint64(p * width + q),
                np.uint64((p + 1) % 3 * width + q),
                np.uint64((p + 2) % 3 * width + q),
            )
            met = buckets[h + here] & (buckets[ha + then] | buckets[hl + before])
            near |= met & ~(np.uint64(np.uint64(q) == own >> _SIX) << (own & np.uint64(63)))
    return near != ZERO or (len(kind.whole) == 1 and ((a == b and a == c) or odd_one(kind, a, b, c) < 3))


@compiled(forceinline=True)
def odd_one(kind: SlotKind, a: np.uint64, b: np.uint64, c: np.uint64) -> int:
    """Return the position of the only matrix of an orbit that is not its own reversal; 3 if none or several are not."""
    if len(kind.turns) % 2 == 1:
        return 3
    odd_a, odd_b, odd_c = a != reverse_bits(a), b != reverse_bits(b), c != reverse_bits(c)
    if int(odd_a) + int(odd_b) + int(odd_c) != 1:
        return 3
    return 0 if odd_a else 1 if odd_b else 2


@compiled(internal=True)
def toggle_cube(s: WordArena, value: np.uint64) -> None:
    """Add a cube modulo 2: remove it if it is present. The caller must ensure that there is room."""
    first = 192 * len(s.live)
    free = -1
    for q in range(MAX_CUBES):
        if s.x[first + q] == value:
            s.x[first + q] = ZERO
            return
        if s.x[first + q] == ZERO and free < 0:
            free = q
    s.x[first + free] = value


@compiled(internal=True)
def has_room(s: WordArena) -> bool:
    """Return whether there is room for two more cubes."""
    free = 0
    for q in range(192 * len(s.live), len(s.x)):
        free += s.x[q] == ZERO
    return free >= 2


@compiled(internal=True)
def shrink(s: WordArena, t: int) -> bool:
    """Drop an orbit with a zero matrix, or replace it by cubes or a smaller orbit.

    Returns whether another pass is needed: it had exactly one matrix that is not its own reversal, and becomes cubes
    perhaps.
    """
    slots = 64 * len(s.live)
    a, b, c = s.x[t], s.x[slots + t], s.x[2 * slots + t]
    odd = 3 if len(s.kind.whole) == 2 else odd_one(s.kind, a, b, c)
    if a == ZERO or b == ZERO or c == ZERO:
        drop(s, t)
    elif len(s.kind.whole) == 1 and len(s.kind.turns) != 2 and a == b and a == c and has_room(s):
        drop(s, t)
        toggle_cube(s, a)
        if mirrored(s.kind, a) != a:
            toggle_cube(s, mirrored(s.kind, a))
    elif odd < 3:
        value = s.x[odd * slots + t]
        put(s, odd, t, (value ^ mirrored(s.kind, value), ZERO))
    return odd < 3 and len(s.kind.turns) != 2

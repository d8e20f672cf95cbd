"""Moves of the symmetric flip graph over GF(2), compiled: flip, reduce, plus, on whole orbits of a small group.

A slot is an orbit, represented by the three matrices of one of its terms, one a position. The group is the length of
`SlotKind.turns`:

2: an involution, in the layout of `involution.mirrored_layout`, where it reverses the bits: "reversal" below. A slot is
   a term and its image, or a term that is its own image. Matrices of the same position flip if they are equal or
   reversals of each other, as every position has its own buckets.
3: the cyclic shift. Equal matrices flip at any positions, since an orbit can be shifted: the positions have common
   buckets, and are nodes p slots + s of a set. So an arena has 3 L lanes, L words a position, and one factor. Cubes
   follow the nodes in `x` and never flip.
6: both; a slot is six terms, or three that are their own reversals.

A flip with an orbit that is not its own reversal adds both images to one that is, so that this remains true. Terms of
an orbit that become equal in pairs cancel. If only one matrix of an orbit is not its own reversal, an orbit with the
sum of both images replaces it, and one of three equal matrices becomes cubes; with `SlotKind.whole` of length 2 neither
happens, as in the walks of Moosbauer and Poole (arXiv 2502.04514). `tests/search/orbit_reference.py` is the equivalent
in plain Python.
"""

from __future__ import annotations

import numpy as np

from ..terms.bits import ONE, compiled, next_draw, popcount, reverse_bits, scalar_code
from ..terms.packed import Words
from ..terms.rings import ZERO
from .moves import FLIP, NO_PARTNER, NONE, REDUCIBLE, choose, count_active
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
    place_of,
    set_live,
    set_out,
)

MAX_CUBES = 64
"""Maximum number of cubes of a walk."""

_TWO, _THREE, _SIX, _HALF, _LOW = (np.uint64(n) for n in (2, 3, 6, 32, 0xFFFFFFFF))
_NEXT, _LAST = np.uint64(0b001001), np.uint64(0b010010)


@compiled(forceinline=True)
def mirrored(kind: SlotKind, value: np.uint64) -> np.uint64:
    """Return the matrix reversed in a walk with reversal, else unchanged."""
    return reverse_bits(value) if len(kind.turns) % 2 == 0 else value


@compiled(forceinline=True)
def alike(kind: SlotKind, a: np.uint64, b: np.uint64, c: np.uint64) -> bool:
    """Return whether an orbit is its own reversal, matrix by matrix; False in a walk without reversal."""
    if len(kind.turns) % 2 == 1:
        return False
    return (a ^ reverse_bits(a)) | (b ^ reverse_bits(b)) | (c ^ reverse_bits(c)) == ZERO


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
        return (_NEXT >> (f + f)) & _THREE, i
    nodes = np.uint64(64 * len(kind.lanes))
    after = i + nodes // _THREE
    return ZERO, after - nodes if after >= nodes else after


@compiled(forceinline=True)
def last_of(kind: SlotKind, f: np.uint64, after: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return those two positions after factor f, given the index of the matrix between."""
    return ((_LAST >> (f + f)) & _THREE, after) if len(kind.turns) == 2 else following(kind, f, after)


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


@compiled
def put(s: WordArena, p: int, slot: int, value: np.uint64) -> None:
    """Set the matrix of a position, and update buckets and active sets."""
    if len(s.kind.turns) == 2:
        place(s.kind, s.x, s.buckets, s.active, np.uint64(p), np.uint64(slot), (value, ZERO))
    else:
        place(s.kind, s.x, s.buckets, s.active, ZERO, np.uint64(p * 64 * len(s.live) + slot), (value, ZERO))


@compiled
def drop(s: WordArena, slot: int) -> None:
    """Free a slot."""
    for p in range(3):
        put(s, p, slot, ZERO)
    set_live(s.live, np.uint64(slot), False)


@compiled
def add(s: WordArena, slot: int, a: np.uint64, b: np.uint64, c: np.uint64) -> None:
    """Store an orbit in a free slot."""
    put(s, 0, slot, a)
    put(s, 1, slot, b)
    put(s, 2, slot, c)
    set_live(s.live, np.uint64(slot), True)


@compiled
def is_alike(s: WordArena, slot: int) -> bool:
    """Return whether the orbit of a slot is its own reversal, matrix by matrix."""
    slots = 64 * len(s.live)
    return alike(s.kind, s.x[slot], s.x[slots + slot], s.x[2 * slots + slot])


@compiled
def count_rank(s: WordArena) -> None:
    """Recount the terms."""
    total, few = 0, 1 if len(s.kind.turns) == 2 else 3
    for slot in range(64 * len(s.live)):
        if is_live(s.live, np.uint64(slot)):
            total += few if len(s.kind.turns) == 3 or is_alike(s, slot) else 2 * few
    for q in range(192 * len(s.live), len(s.x)):
        total += s.x[q] != ZERO
    s.counters[RANK] = total


@compiled
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


@compiled
def has_room(s: WordArena) -> bool:
    """Return whether there is room for two more cubes."""
    free = 0
    for q in range(192 * len(s.live), len(s.x)):
        free += s.x[q] == ZERO
    return free >= 2


@compiled
def load(s: WordArena, terms: Words) -> None:
    """Replace all orbits and cubes by others, in the layout of `WordArena.x`."""
    clear(s)
    slots = 64 * len(s.live)
    for slot in range(slots):
        if terms[slot] != ZERO:
            add(s, slot, terms[slot], terms[slots + slot], terms[2 * slots + slot])
    for q in range(3 * slots, len(s.x)):
        s.x[q] = terms[q]
    count_rank(s)
    set_out(s)


@compiled
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
    elif len(s.kind.whole) == 2:
        return False
    elif len(s.kind.turns) != 2 and a == b and a == c and has_room(s):
        drop(s, t)
        toggle_cube(s, a)
        if mirrored(s.kind, a) != a:
            toggle_cube(s, mirrored(s.kind, a))
    elif odd < 3:
        value = s.x[odd * slots + t]
        put(s, odd, t, value ^ mirrored(s.kind, value))
    else:
        return False
    s.counters[REDUCTIONS] += 1
    return odd < 3 and len(s.kind.turns) != 2


@compiled(forceinline=True)
def image(s: WordArena, turn: int, p: int, slot: int) -> np.uint64:
    """Return the matrix of a position of an orbit after the group's element of number `turn`."""
    shift = 0 if len(s.kind.turns) == 2 else turn
    value = s.x[(p + shift) % 3 * 64 * len(s.live) + slot]
    return mirrored(s.kind, value) if turn >= (1 if len(s.kind.turns) == 2 else 3) else value


@compiled(forceinline=True)
def merge(s: WordArena, t: int, u: int) -> bool:
    """Merge two orbits that share two matrices, the second shifted and reversed; return whether they do."""
    slots = 64 * len(s.live)
    for turn in range(len(s.kind.turns)):
        equal, odd = 0, 2
        for p in range(3):
            if s.x[p * slots + t] == image(s, turn, p, u):
                equal += 1
            else:
                odd = p
        if equal >= 2:
            paired = len(s.kind.turns) != 3 and not is_alike(s, t)
            put(s, odd, t, s.x[odd * slots + t] ^ image(s, turn, odd, u))
            if paired and is_alike(s, t):
                put(s, 0, t, ZERO)
            drop(s, u)
            s.counters[REDUCTIONS] += 1
            return True
    return False


@compiled
def reduce(s: WordArena) -> None:
    """Replace orbits by smaller ones where possible, and merge those that share two matrices."""
    slots = 64 * len(s.live)
    again = True
    while again:
        again = False
        for t in range(slots):
            if is_live(s.live, np.uint64(t)):
                again |= shrink(s, t)
        for t in range(slots):
            for u in range(t + 1, slots if is_live(s.live, np.uint64(t)) else 0):
                if is_live(s.live, np.uint64(u)) and is_alike(s, t) == is_alike(s, u):
                    again |= merge(s, t, u)
    count_rank(s)


@compiled
def plus(s: WordArena) -> bool:
    """Make a plus transition: split two orbits into three; return False if no pair allows it.

    a b c + a' b' c' = a (b + b') c + a b' (c + c') + (a + a') b' c' with the second orbit shifted (and
    reversed) and the roles permuted by the draw. Both must then differ in all positions.
    """
    slots = 64 * len(s.live)
    slot = np.int64(free_slot(s.live))
    orbits = ZERO
    for q in range(len(s.live)):
        orbits += popcount(s.live[q])
    if slot == slots or (len(s.kind.turns) != 2 and orbits < _TWO):
        return False
    x = s.x
    for _ in range(PLUS_TRIES):
        draw = next_draw(s.rng[0])
        i = np.int64(pick(s.live, draw >> _HALF))
        draw = next_draw(draw)
        j = np.int64(pick(s.live, draw >> _HALF))
        s.rng[0] = draw
        choice = np.int64(((draw & _LOW) * np.uint64(6 * len(s.kind.turns))) >> _HALF)
        turn, f = choice // 6, choice % 6 // 2
        g = (f + 1 + choice % 2) % 3
        e = 3 - f - g
        a, b, c = image(s, turn, f, j), image(s, turn, g, j), image(s, turn, e, j)
        paired = len(s.kind.turns) != 3 and not is_alike(s, i)
        equal = i == j or is_alike(s, i) != is_alike(s, j)
        equal |= a == x[f * slots + i] or b == x[g * slots + i] or c == x[e * slots + i]
        if equal:
            continue
        first, last = x[f * slots + i], x[e * slots + i]
        put(s, g, i, x[g * slots + i] ^ b)
        # The second orbit is stored as it was drawn: shifted and reversed.
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

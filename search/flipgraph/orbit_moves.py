"""Moves of the symmetric flip graph over GF(2), compiled: flip, reduce, plus, on whole orbits.

The three matrices of an orbit are nodes p slots + s, p = 0, 1, 2, with common buckets: equal matrices
flip at any positions p, since an orbit can be shifted cyclically. The bit of slot s at position p is in
word p L + s // 64 of a set, L words a position, so an arena with 3 L lanes and one factor represents them.
Cubes follow the nodes in `x` and never flip. `tests/search/orbit_reference.py` is the equivalent in plain Python.

With reversal too (`SlotKind.turns` of length 6) a slot represents an orbit of three and its reversal, six
terms, and matrices that are equal up to reversal flip; an orbit that is its own reversal, matrix by
matrix, has three terms; a flip with one of six terms adds both images to it, so that this remains true. With
`SlotKind.whole` of length 2 no orbit of six terms becomes one of three or two cubes, as in the walks of Moosbauer and
Poole (arXiv 2502.04514).
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
    bucket_at,
    clear,
    free_slot,
    is_live,
    pick,
    place,
    set_live,
    set_out,
)

MAX_CUBES = 64
"""Maximum number of cubes of a walk."""

_TWO, _THREE, _SIX, _HALF, _LOW = (np.uint64(n) for n in (2, 3, 6, 32, 0xFFFFFFFF))


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
def following(kind: SlotKind, node: np.uint64) -> np.uint64:
    """Return the node of the next position in the same orbit."""
    nodes = np.uint64(64 * len(kind.lanes))
    after = node + nodes // _THREE
    return after - nodes if after >= nodes else after


@compiled(forceinline=True)
def try_flip(kind: SlotKind, x: Words, buckets: Words, active: Words, guard: Words, draw: np.uint64) -> int:
    """Try a flip of two orbits, shifted so that the equal matrices come first, by one draw."""
    scalar_code()
    event = NONE
    total = count_active(kind, active)
    if total != ZERO:
        _, i, j, _, coin = choose(kind, x, buckets, active, draw, total)
        event = NO_PARTNER
        slots = np.uint64(64 * len(kind.lanes)) // _THREE
        equal, reverse = x[i] == x[j], False
        if len(kind.turns) == 6 and x[i] == reverse_bits(x[j]):
            reverse = not equal or coin & ONE != ZERO
            equal = True
        if equal and i % slots != j % slots:
            gi, gj = following(kind, i), following(kind, j)
            ei, ej = following(kind, gi), following(kind, gj)
            one, two = alike(kind, x[i], x[gi], x[ei]), alike(kind, x[j], x[gj], x[ej])
            b = mirrored(kind, x[gj]) if reverse else x[gj]
            c = mirrored(kind, x[ei]) if reverse else x[ei]
            left, right = x[gi] ^ taken(kind, b, one, two), x[ej] ^ taken(kind, c, two, one)
            # Six terms that are three equal pairs cancel: the orbit is zero.
            if not one and alike(kind, x[i], left, x[ei]):
                left = ZERO
            if not two and alike(kind, x[j], x[gj], right):
                right = ZERO
            place(kind, x, buckets, active, ZERO, gi, (left, ZERO))
            place(kind, x, buckets, active, ZERO, ej, (right, ZERO))
            event = FLIP
            if left == ZERO or right == ZERO or meets(kind, x, buckets, gi) or meets(kind, x, buckets, ej):
                event = REDUCIBLE
    return event


@compiled(forceinline=True)
def meets(kind: SlotKind, x: Words, buckets: Words, node: np.uint64) -> bool:
    """Return whether an orbit may equal another in the changed node and a second one, or can become a smaller one.

    Buckets are compared, not values, so True may be wrong.
    """
    width = len(kind.lanes) // 3
    after = following(kind, node)
    last = following(kind, after)
    a, b, c = x[node], x[after], x[last]
    h, ha, hl = bucket_at(kind, ZERO, (a, ZERO)), bucket_at(kind, ZERO, (b, ZERO)), bucket_at(kind, ZERO, (c, ZERO))
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
def put_node(s: WordArena, node: int, value: np.uint64) -> None:
    """Set a node, and update buckets and active sets."""
    place(s.kind, s.x, s.buckets, s.active, ZERO, np.uint64(node), (value, ZERO))


@compiled
def drop_orbit(s: WordArena, slot: int) -> None:
    """Free a slot."""
    slots = 64 * len(s.live)
    for p in range(3):
        put_node(s, p * slots + slot, ZERO)
    set_live(s.live, np.uint64(slot), False)


@compiled
def add_orbit(s: WordArena, slot: int, a: np.uint64, b: np.uint64, c: np.uint64) -> None:
    """Store an orbit in a free slot."""
    slots = 64 * len(s.live)
    put_node(s, slot, a)
    put_node(s, slots + slot, b)
    put_node(s, 2 * slots + slot, c)
    set_live(s.live, np.uint64(slot), True)


@compiled
def is_alike(s: WordArena, slot: int) -> bool:
    """Return whether the orbit of a slot is its own reversal, matrix by matrix."""
    slots = 64 * len(s.live)
    return alike(s.kind, s.x[slot], s.x[slots + slot], s.x[2 * slots + slot])


@compiled
def count_rank(s: WordArena) -> None:
    """Recount the terms."""
    total = 0
    for slot in range(64 * len(s.live)):
        if is_live(s.live, np.uint64(slot)):
            total += 3 if len(s.kind.turns) == 3 or is_alike(s, slot) else 6
    for q in range(MAX_CUBES):
        total += s.x[192 * len(s.live) + q] != ZERO
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
    for q in range(MAX_CUBES):
        free += s.x[192 * len(s.live) + q] == ZERO
    return free >= 2


@compiled
def load(s: WordArena, terms: Words) -> None:
    """Replace all orbits and cubes by others, in the layout of `WordArena.x`."""
    clear(s)
    slots = 64 * len(s.live)
    for slot in range(slots):
        if terms[slot] != ZERO:
            add_orbit(s, slot, terms[slot], terms[slots + slot], terms[2 * slots + slot])
    for q in range(MAX_CUBES):
        s.x[3 * slots + q] = terms[3 * slots + q]
    count_rank(s)
    set_out(s)


@compiled
def shrink(s: WordArena, t: int) -> bool:
    """Drop an orbit with a zero matrix, or replace it by cubes or a smaller orbit.

    Returns whether it had exactly one matrix that is not its own reversal, so that another pass is needed.
    """
    slots = 64 * len(s.live)
    a, b, c = s.x[t], s.x[slots + t], s.x[2 * slots + t]
    odd = 3 if len(s.kind.whole) == 2 else odd_one(s.kind, a, b, c)
    if a == ZERO or b == ZERO or c == ZERO:
        drop_orbit(s, t)
    elif len(s.kind.whole) == 2:
        return False
    elif a == b and a == c and has_room(s):
        drop_orbit(s, t)
        toggle_cube(s, a)
        if mirrored(s.kind, a) != a:
            toggle_cube(s, mirrored(s.kind, a))
    elif odd < 3:
        value = s.x[odd * slots + t]
        put_node(s, odd * slots + t, value ^ mirrored(s.kind, value))
    else:
        return False
    s.counters[REDUCTIONS] += 1
    return odd < 3


@compiled
def reduce(s: WordArena) -> None:
    """Replace orbits by smaller ones where possible, and merge those that share two matrices."""
    slots = 64 * len(s.live)
    x = s.x
    again = True
    while again:
        again = False
        for t in range(slots):
            if is_live(s.live, np.uint64(t)):
                again |= shrink(s, t)
        for t in range(slots):
            for u in range(t + 1, slots if is_live(s.live, np.uint64(t)) else 0):
                if not is_live(s.live, np.uint64(u)) or is_alike(s, t) != is_alike(s, u):
                    continue
                for turn in range(len(s.kind.turns)):
                    equal, odd, value = 0, 2, ZERO
                    for p in range(3):
                        other = x[(p + turn) % 3 * slots + u]
                        other = mirrored(s.kind, other) if turn >= 3 else other
                        if x[p * slots + t] == other:
                            equal += 1
                        else:
                            odd, value = p, other
                        if p == 2 and equal == 3:
                            value = other
                    if equal >= 2:
                        paired = len(s.kind.turns) == 6 and not is_alike(s, t)
                        put_node(s, odd * slots + t, x[odd * slots + t] ^ value)
                        if paired and is_alike(s, t):
                            put_node(s, t, ZERO)
                        drop_orbit(s, u)
                        s.counters[REDUCTIONS] += 1
                        again = True
                        break
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
    if slot == slots or orbits < _TWO:
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
        fj, gj, ej = (f + turn) % 3 * slots + j, (g + turn) % 3 * slots + j, (e + turn) % 3 * slots + j
        a, b, c = x[fj], x[gj], x[ej]
        if turn >= 3:
            a, b, c = mirrored(s.kind, a), mirrored(s.kind, b), mirrored(s.kind, c)
        paired = len(s.kind.turns) == 6 and not is_alike(s, i)
        equal = i == j or is_alike(s, i) != is_alike(s, j)
        equal |= a == x[f * slots + i] or b == x[g * slots + i] or c == x[e * slots + i]
        if equal:
            continue
        third = s.scratch[0]
        third[f], third[g], third[e] = x[f * slots + i] ^ a, b, c
        put_node(s, g * slots + i, x[g * slots + i] ^ b)
        # The second orbit is stored as it was drawn: shifted and reversed.
        put_node(s, f * slots + j, x[f * slots + i])
        put_node(s, g * slots + j, b)
        put_node(s, e * slots + j, x[e * slots + i] ^ c)
        add_orbit(s, slot, third[0], third[1], third[2])
        if paired:
            for changed in (i, j, slot):
                if is_alike(s, changed):
                    put_node(s, changed, ZERO)
        count_rank(s)
        return True
    return False

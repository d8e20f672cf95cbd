"""Memory of one walker: terms in slots, hashed buckets of slots with equal factors, and sets of active slots.

A set of slots is a bitset of `lanes` words. The bucket sets and the active sets are updated by `place`
only, in O(1) per changed factor: there are no lists, positions or chains. This is variant V7 of our
measurements, 20 to 40 ns a flip.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...schemes_db.factor import IntArray
from ..terms.bits import ONE, compiled, first_bit, opaque, popcount, reverse_bits, scalar_code, select_bit
from ..terms.rings import GF2, ZERO, Ring, Value
from ..terms.words import Words

BUCKET_BITS = 12
_BITS = np.uint64(BUCKET_BITS)
_SHIFT = np.uint64(64 - BUCKET_BITS)
_GOLDEN, _SILVER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_TWO, _SIX, _LOW = np.uint64(2), np.uint64(6), np.uint64(63)

STEPS, FLIPS, MISSES, SINCE, RANK, WALK_BEST, WALK_STEPS, TRAPPED, BEST = range(9)
"""Indices of `WordArena.counters`; see `WordArena`."""


class SlotKind(NamedTuple):
    """Compile-time parameters of a walk: the lengths of tuples of zeros, which are known to the compiler.

    Attributes:
        lanes: number of words of a set of slots (of nodes, in a symmetric walk).
        ring: see `rings`.
        turns: the order of the symmetry group: one for a plain walk, two for a reversal, three for a cyclic shift,
            six for both.
        guard: one if all flips are accepted, two if `constraints.allowed` decides.
        whole: two if no orbit ever becomes its own reversal, else one.
    """

    lanes: tuple[int, ...]
    ring: Ring
    turns: tuple[int, ...]
    guard: tuple[int, ...]
    whole: tuple[int, ...] = (0,)


class WordArena(NamedTuple):
    """The complete state of a walker; the arrays are not shared and are changed in place.

    Attributes:
        kind: compile-time parameters.
        x: rows of slots = 64 lanes words, all zero where a slot is free: the first planes of U, V and W,
            then, except over GF(2), the second planes and the signs (see `rings`).
        buckets: (3 2^12 lanes,) uint64, for each factor and hash the slots whose factor has this hash.
        active: (3 lanes,) uint64, for each factor the slots whose bucket contains another slot.
        live: (lanes,) uint64, the slots in use.
        start: as x, the terms that a restart returns to.
        best: as x, the best terms so far.
        rng: (1,) uint64, the state of xorshift64.
        counters: (9,) int64: STEPS (draws), FLIPS made, consecutive MISSES, steps SINCE the last event,
            current RANK, WALK_BEST rank since the restart, WALK_STEPS steps since WALK_BEST, how often
            TRAPPED since WALK_BEST, BEST rank of all (with the policy's extra ranks for full products).
        guard: see `constraints`.
        scratch: (3, 64) uint64, scratch memory of the moves.
    """

    kind: SlotKind
    x: Words
    buckets: Words
    active: Words
    live: Words
    start: Words
    best: Words
    rng: Words
    counters: IntArray
    guard: Words
    scratch: Words


@compiled(forceinline=True)
def bucket_at(kind: SlotKind, f: np.uint64, value: Value) -> np.uint64:
    """Return the index of the first word of the bucket of a factor value: the top bits of a multiplicative hash."""
    key = value[0] * _GOLDEN
    if len(kind.turns) % 2 == 0:  # a matrix and its reversal share a bucket
        key = min(value[0], reverse_bits(value[0])) * _GOLDEN
    if len(kind.ring) != GF2:
        key += value[1] * _SILVER
    return ((f << _BITS) + (key >> _SHIFT)) * np.uint64(len(kind.lanes))


@compiled(forceinline=True)
def place_of(kind: SlotKind, f: np.uint64, slot: np.uint64) -> np.uint64:
    """Return the index in `x` of the first word of factor f of a slot; f = 6 is the sign."""
    return f * np.uint64(64 * len(kind.lanes)) + slot


@compiled(forceinline=True)
def factor_at(kind: SlotKind, x: Words, f: np.uint64, slot: np.uint64) -> Value:
    """Return factor f of a slot, zero if it is free."""
    at = place_of(kind, f, slot)
    if len(kind.ring) == GF2:
        return x[at], ZERO
    return x[at], x[at + np.uint64(192 * len(kind.lanes))]


@compiled(forceinline=True)
def term_sign(kind: SlotKind, x: Words, slot: np.uint64) -> np.uint64:
    """Return the sign of a term."""
    return ZERO if len(kind.ring) == GF2 else x[place_of(kind, _SIX, slot)]


@compiled(forceinline=True)
def turn_term(kind: SlotKind, x: Words, slot: np.uint64, sign: np.uint64) -> None:
    """Multiply the sign of a term by a sign."""
    if len(kind.ring) != GF2:
        x[place_of(kind, _SIX, slot)] ^= sign


@compiled(forceinline=True)
def bit_in(kind: SlotKind, lane: np.uint64, slot: np.uint64) -> np.uint64:
    """Return the bit of a slot in word `lane` of a set: zero if the slot belongs to another word."""
    if len(kind.lanes) == 1:
        return ONE << slot
    return np.uint64(lane == slot >> _SIX) << (slot & _LOW)


@compiled(forceinline=True)
def place(kind: SlotKind, x: Words, buckets: Words, active: Words, f: np.uint64, slot: np.uint64, value: Value) -> None:
    """Set factor f of a slot, and update buckets and active sets; zero removes it.

    The arguments are the arrays of an arena: extracting them from it would take longer than the function
    in a hot loop. Conditions are computed by arithmetic, since branches would be unpredictable.
    """
    scalar_code()
    count = len(kind.lanes)
    base = f * np.uint64(count)
    at = place_of(kind, f, slot)
    old = factor_at(kind, x, f, slot)
    x[at] = value[0]
    if len(kind.ring) != GF2:
        x[at + np.uint64(192 * count)] = value[1]
    if old[0] != ZERO:
        h = bucket_at(kind, f, old)
        left = ZERO
        for q in range(count):
            p = np.uint64(q)
            left += popcount(buckets[h + p] & ~bit_in(kind, p, slot))
        # All ones if at most one slot is left in the bucket: it is no longer active.
        alone = opaque(ZERO - ((left - _TWO) >> _LOW))
        for q in range(count):
            p = np.uint64(q)
            bit = bit_in(kind, p, slot)
            rest = buckets[h + p] & ~bit
            buckets[h + p] = rest
            active[base + p] &= ~(bit | (rest & alone))
    if value[0] != ZERO:
        h = bucket_at(kind, f, value)
        some = ZERO
        for q in range(count):
            some |= buckets[h + np.uint64(q)]
        shared = opaque(ZERO - ((some | opaque(ZERO - some)) >> _LOW))
        for q in range(count):
            p = np.uint64(q)
            rest = buckets[h + p] | bit_in(kind, p, slot)
            buckets[h + p] = rest
            active[base + p] |= rest & shared


@compiled(forceinline=True)
def pick(words: Words, draw: np.uint64) -> np.uint64:
    """Return a random member, uniform by a 32-bit draw, of a nonempty bitset of any number of words."""
    total = ZERO
    for q in range(len(words)):
        total += popcount(words[q])
    k = (draw * total) >> np.uint64(32)
    for q in range(len(words)):
        count = popcount(words[q])
        if k < count:
            return (np.uint64(q) << _SIX) + select_bit(words[q], k)
        k -= count
    return ZERO


@compiled(internal=True)
def free_slot(live: Words) -> np.uint64:
    """Return the lowest free slot, or the number of slots if there is none."""
    for q in range(len(live)):
        if ~live[q] != ZERO:
            return (np.uint64(q) << _SIX) + first_bit(~live[q])
    return np.uint64(64 * len(live))


@compiled(internal=True)
def is_live(live: Words, slot: np.uint64) -> bool:
    """Return whether a slot is in a set."""
    return (live[slot >> _SIX] >> (slot & _LOW)) & ONE != ZERO


@compiled(internal=True)
def set_live(live: Words, slot: np.uint64, used: bool) -> None:
    """Add a slot to a set, or remove it."""
    bit = ONE << (slot & _LOW)
    live[slot >> _SIX] = live[slot >> _SIX] | bit if used else live[slot >> _SIX] & ~bit


@compiled(internal=True)
def clear(s: WordArena) -> None:
    """Remove all terms."""
    for words in (s.buckets, s.active, s.live, s.x):
        words[:] = ZERO
    s.counters[RANK] = 0


@compiled(internal=True)
def set_out(s: WordArena) -> None:
    """Reset the counters since the restart, for the current terms."""
    s.counters[WALK_BEST] = s.counters[RANK]
    for place in (WALK_STEPS, TRAPPED, SINCE, MISSES):
        s.counters[place] = 0

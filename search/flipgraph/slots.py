"""The memory of one walker: terms in slots, hashed buckets of equal factors, and the sets kept of them.

A set of slots is a bitset of `lanes` words. The bucket sets and the active sets are kept up to date
by `place` alone, in O(1) a changed factor: there are no lists, positions or chains. This is the form
V7 of our measurements, 20 to 40 ns a flip.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..terms.bits import ONE, compiled, first_bit, opaque, popcount, reverse_bits, scalar_code, select_bit
from ..terms.packed import Words
from ..terms.rings import GF2, ZERO, Ring, Value

BUCKET_BITS = 12
_BITS = np.uint64(BUCKET_BITS)
_SHIFT = np.uint64(64 - BUCKET_BITS)
_GOLDEN, _SILVER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_TWO, _SIX, _LOW = np.uint64(2), np.uint64(6), np.uint64(63)

(STEPS, FLIPS, MISSES, SINCE, RANK, WALK_BEST, WALK_STEPS, TRAPPED, BEST, PLUSES, RESTARTS, REDUCTIONS, GAIN_STEP) = (
    range(13)
)
"""Places of `Arena.counters`; see `Arena`."""


class Kind(NamedTuple):
    """What a walk is compiled for: zeros all, but their numbers are known to the compiler.

    Attributes:
        lanes: as many as a set of slots (of nodes, in a symmetric walk) has words.
        ring: see `rings`.
        turns: one for a plain walk; three for orbits of a cyclic shift, six with a reversal too.
        guard: one if flips are made as they come, two if `guard.allowed` is asked before.
        whole: two if orbits of six terms never become smaller ones, else one.
    """

    lanes: tuple[int, ...]
    ring: Ring
    turns: tuple[int, ...]
    guard: tuple[int, ...]
    whole: tuple[int, ...] = (0,)


class Arena(NamedTuple):
    """The whole state of a walker; every array is its own and is changed in place.

    Attributes:
        kind: what it is compiled for.
        x: rows of slots = 64 lanes words, all zero where a slot is free: the first planes of U, V and W,
            then, but over GF(2), the second planes and the signs (see `rings`).
        buckets: (3 2^12 lanes,) uint64, by factor and hash the slots whose factor hashes there.
        active: (3 lanes,) uint64, for each factor the slots whose bucket holds another slot too.
        live: (lanes,) uint64, the slots in use.
        start: as x, the terms that a restart returns to.
        best: as x, the best terms so far.
        rng: (1,) uint64, the state of xorshift64.
        counters: (13,) int64: STEPS done (draws), FLIPS made, MISSES in a row, steps SINCE the last
            event, RANK now, WALK_BEST rank since the restart, WALK_STEPS steps since WALK_BEST,
            how often TRAPPED since WALK_BEST, BEST rank of all (or what the policy counts as
            such), PLUSES, RESTARTS, REDUCTIONS, and the step of the last gain of BEST.
        guard: see `guard`.
        scratch: (3, 64) uint64, for the moves' own use.
    """

    kind: Kind
    x: Words
    buckets: Words
    active: Words
    live: Words
    start: Words
    best: Words
    rng: Words
    counters: npt.NDArray[np.int64]
    guard: Words
    scratch: Words


STATE = ("x", "buckets", "active", "live", "start", "best", "rng", "counters", "guard", "scratch")
"""The arrays of an arena that change."""


@compiled(forceinline=True)
def bucket_at(kind: Kind, f: np.uint64, value: Value) -> np.uint64:
    """Where the bucket of a factor value starts: the top bits of a multiplicative hash, by factor."""
    key = value[0] * _GOLDEN
    if len(kind.turns) == 6:  # a matrix and its reversal count as equal
        key = min(value[0], reverse_bits(value[0])) * _GOLDEN
    if len(kind.ring) != GF2:
        key += value[1] * _SILVER
    return ((f << _BITS) + (key >> _SHIFT)) * np.uint64(len(kind.lanes))


@compiled(forceinline=True)
def place_of(kind: Kind, f: np.uint64, slot: np.uint64) -> np.uint64:
    """Where the first word of factor f of a slot stands in `x`; f = 6 is the sign."""
    return f * np.uint64(64 * len(kind.lanes)) + slot


@compiled(forceinline=True)
def factor_at(kind: Kind, x: Words, f: np.uint64, slot: np.uint64) -> Value:
    """Factor f of a slot, zero where it is free."""
    at = place_of(kind, f, slot)
    if len(kind.ring) == GF2:
        return x[at], ZERO
    return x[at], x[at + np.uint64(192 * len(kind.lanes))]


@compiled(forceinline=True)
def term_sign(kind: Kind, x: Words, slot: np.uint64) -> np.uint64:
    """The sign of a term."""
    return ZERO if len(kind.ring) == GF2 else x[place_of(kind, _SIX, slot)]


@compiled(forceinline=True)
def turn_term(kind: Kind, x: Words, slot: np.uint64, sign: np.uint64) -> None:
    """Multiply the sign of a term by a sign."""
    if len(kind.ring) != GF2:
        x[place_of(kind, _SIX, slot)] ^= sign


@compiled(forceinline=True)
def bit_in(kind: Kind, lane: np.uint64, slot: np.uint64) -> np.uint64:
    """The bit of a slot in word `lane` of a set: nothing where the slot belongs to another word."""
    if len(kind.lanes) == 1:
        return ONE << slot
    return np.uint64(lane == slot >> _SIX) << (slot & _LOW)


@compiled(forceinline=True)
def place(kind: Kind, x: Words, buckets: Words, active: Words, f: np.uint64, slot: np.uint64, value: Value) -> None:
    """Set factor f of a slot, and bring buckets and active sets up to date; zero takes it out.

    Works on the bare arrays of an arena: taking them out of it would cost a hot loop more than the
    work. Conditions are arithmetic, since none of them can be predicted.
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
        # All ones for a slot that is left alone in its bucket (or an empty bucket): it is active no more.
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
    """A member of a bitset of any number of words, uniform by a 32-bit draw; the set must not be empty."""
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


@compiled
def free_slot(live: Words) -> np.uint64:
    """The lowest free slot, or the number of slots where there is none."""
    for q in range(len(live)):
        if ~live[q] != ZERO:
            return (np.uint64(q) << _SIX) + first_bit(~live[q])
    return np.uint64(64 * len(live))


@compiled
def is_live(live: Words, slot: np.uint64) -> bool:
    """Whether a slot is in a set."""
    return (live[slot >> _SIX] >> (slot & _LOW)) & ONE != ZERO


@compiled
def set_live(live: Words, slot: np.uint64, used: bool) -> None:
    """Put a slot into a set, or take it out."""
    bit = ONE << (slot & _LOW)
    live[slot >> _SIX] = live[slot >> _SIX] | bit if used else live[slot >> _SIX] & ~bit


@compiled
def clear(s: Arena) -> None:
    """Take all terms out."""
    for words in (s.buckets, s.active, s.live, s.x):
        words[:] = ZERO
    s.counters[RANK] = 0


@compiled
def set_out(s: Arena) -> None:
    """Begin to count anew, from the terms that stand there."""
    s.counters[WALK_BEST] = s.counters[RANK]
    for place in (WALK_STEPS, TRAPPED, SINCE, MISSES):
        s.counters[place] = 0

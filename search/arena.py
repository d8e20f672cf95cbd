"""The memory of one walker: terms in slots, hashed buckets of equal factors, and the sets kept of them.

A set of slots is a bitset of `lanes` words. The bucket sets and the active sets are kept up to date
by `put` alone, in O(1) a changed factor: there are no lists, positions or chains. This is the form
V7 of our measurements, 25 to 40 ns a flip.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from .bits import ONE, compiled, first_bit, opaque, popcount, scalar_code, select_bit
from .packed import WORD_BITS, PackedTerms, Words, lanes_for
from .seeds import splitmix
from .ternary import HALF_BITS, Terms, TernaryTerms, canonical

BUCKET_BITS = 12
_BITS = np.uint64(BUCKET_BITS)
_SHIFT = np.uint64(64 - BUCKET_BITS)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TWO, _SIX, _LOW = np.uint64(2), np.uint64(6), np.uint64(63)
ZERO = np.uint64(0)

(STEPS, FLIPS, MISSES, SINCE, RANK, WALK_BEST, WALK_STEPS, TRAPPED, BEST, PLUSES, RESTARTS, REDUCTIONS, GAIN_STEP) = (
    range(13)
)
"""Places of `Arena.tally`; see `Arena`."""


class Arena(NamedTuple):
    """The whole state of a walker; every array is its own and is changed in place.

    Attributes:
        lanes: zeros, as many as a set of slots has words; the length is known to the compiler.
        ring: zeros, two over GF(2), three over {-1, 0, 1} and one for orbits over GF(2) (see
            `orbit_moves`); the length is known to the compiler.
        x: (3 slots,) uint64, slots = 64 lanes: the factor values, 0 where the slot is free; all of U, then V, then W.
            Over {-1, 0, 1} values are canonical (their lowest coefficient is 1) and a fourth row has
            the signs of the terms, 0 for plus and 32 for minus: what a rotation by it makes of a factor.
        buckets: (3 2^12 lanes,) uint64, by factor and hash the slots whose factor hashes there.
        active: (3 lanes,) uint64, for each factor the slots whose bucket holds another slot too.
        live: (lanes,) uint64, the slots in use.
        start: as x, the terms that a restart goes back to.
        best: as x, the terms at the lowest rank so far.
        rng: (1,) uint64, the state of xorshift64.
        tally: (13,) int64: STEPS done (draws), FLIPS made, MISSES in a row, steps SINCE the last
            event, RANK now, WALK_BEST rank since the restart, WALK_STEPS steps since WALK_BEST,
            how often TRAPPED since WALK_BEST, BEST rank of all, PLUSES, RESTARTS, REDUCTIONS, and
            the step of the last gain of BEST.
        scratch: (3, 64) uint64, for the moves' own use.
    """

    lanes: tuple[int, ...]
    ring: tuple[int, ...]
    x: Words
    buckets: Words
    active: Words
    live: Words
    start: Words
    best: Words
    rng: Words
    tally: npt.NDArray[np.int64]
    scratch: Words


def make_arena(start: Terms, seed: int, index: int = 0, room: int = 0) -> Arena:
    """A walker at `start` with slots for at least `room` terms more.

    Raises:
        PlanError: more than 512 terms.
    """
    lanes = lanes_for(start.rank + room)
    slots = lanes * WORD_BITS
    terms = rows_of(start, slots)
    tally = np.zeros(13, dtype=np.int64)
    tally[BEST] = start.rank
    arena = Arena(
        lanes=(0,) * lanes,
        ring=(0,) * (len(terms) - 1),
        x=np.zeros(terms.size, dtype=np.uint64),
        buckets=np.zeros(3 * lanes << BUCKET_BITS, dtype=np.uint64),
        active=np.zeros(3 * lanes, dtype=np.uint64),
        live=np.zeros(lanes, dtype=np.uint64),
        start=terms.ravel(),
        best=terms.flatten(),
        rng=np.array([splitmix(seed, index)], dtype=np.uint64),
        tally=tally,
        scratch=np.zeros((3, WORD_BITS), dtype=np.uint64),
    )
    load(arena, arena.start)
    return arena


def rows_of(terms: Terms, slots: int) -> Words:
    """The terms in the form of `Arena.x`, as rows.

    Raises:
        PlanError: a factor is zero.
    """
    if not terms.words.all():
        raise PlanError("a term with a zero factor can't start a walk: leave it out")
    ternary = isinstance(terms, TernaryTerms)
    rows = np.zeros((4 if ternary else 3, slots), dtype=np.uint64)
    if isinstance(terms, TernaryTerms):
        rows[:3, : terms.rank], rows[3, : terms.rank] = canonical(terms.words)
    else:
        rows[:, : terms.rank] = terms.words
    return rows


def restart_from(arena: Arena, start: Terms, terms: Terms) -> None:
    """Make other terms of the same target and ring the start of a walker made at `start`.

    Raises:
        PlanError: they compute another target, stand in another ring, or are too many.
    """
    slots = len(arena.lanes) * WORD_BITS
    if terms.target != start.target or type(terms) is not type(start):
        raise PlanError(f"a walk on {start.target} can't go on from terms of {terms.target} or of another ring")
    if terms.rank > slots:
        raise PlanError(f"{terms.rank} terms do not fit a walk of {slots} slots")
    arena.start[:] = rows_of(terms, slots).ravel()


def best_terms(arena: Arena, start: Terms) -> Terms:
    """The terms at the lowest rank that the walker has seen."""
    return _terms(arena.best, arena, start)


def current_terms(arena: Arena, start: Terms) -> Terms:
    """The terms that the walker stands at."""
    return _terms(arena.x, arena, start)


def _terms(flat: Words, arena: Arena, start: Terms) -> Terms:
    rows = flat.reshape(-1, len(arena.lanes) * WORD_BITS)
    words = rows[:3, rows[0] != 0]
    if isinstance(start, TernaryTerms):
        turn, half = rows[3, rows[0] != 0], np.uint64(HALF_BITS)
        words[2] = np.where(turn != 0, (words[2] << half) | (words[2] >> half), words[2])
        return TernaryTerms(start.target, words)
    return PackedTerms(start.target, words)


@compiled(forceinline=True)
def bucket_at(lanes: tuple[int, ...], f: np.uint64, value: np.uint64) -> np.uint64:
    """Where the bucket of a factor value starts: the top bits of a multiplicative hash, by factor."""
    return ((f << _BITS) + ((value * _GOLDEN) >> _SHIFT)) * np.uint64(len(lanes))


@compiled(forceinline=True)
def place_of(lanes: tuple[int, ...], f: np.uint64, slot: np.uint64) -> np.uint64:
    """Where factor f of a slot stands in `x`."""
    return f * np.uint64(64 * len(lanes)) + slot


@compiled(forceinline=True)
def bit_in(lanes: tuple[int, ...], lane: np.uint64, slot: np.uint64) -> np.uint64:
    """The bit of a slot in word `lane` of a set: nothing where the slot belongs to another word."""
    if len(lanes) == 1:
        return ONE << slot
    return np.uint64(lane == slot >> _SIX) << (slot & _LOW)


@compiled
def lane_of(s: Arena, slot: np.uint64) -> np.uint64:
    """The word of a slot's bit."""
    return ZERO if len(s.lanes) == 1 else slot >> _SIX


@compiled
def bit_of(slot: np.uint64) -> np.uint64:
    """The bit of a slot in its word."""
    return ONE << (slot & _LOW)


@compiled(forceinline=True)
def place(
    lanes: tuple[int, ...], x: Words, buckets: Words, active: Words, f: np.uint64, slot: np.uint64, value: np.uint64
) -> None:
    """`put` on the bare arrays of an arena: taking them out of it would cost a hot loop more than the work.

    Conditions are arithmetic, since none of them can be predicted.
    """
    scalar_code()
    count = len(lanes)
    base = f * np.uint64(count)
    at = place_of(lanes, f, slot)
    old = x[at]
    x[at] = value
    if old != ZERO:
        h = bucket_at(lanes, f, old)
        left = ZERO
        for q in range(count):
            p = np.uint64(q)
            left += popcount(buckets[h + p] & ~bit_in(lanes, p, slot))
        # All ones for a slot that is left alone in its bucket (or an empty bucket): it is active no more.
        alone = opaque(ZERO - ((left - _TWO) >> _LOW))
        for q in range(count):
            p = np.uint64(q)
            bit = bit_in(lanes, p, slot)
            rest = buckets[h + p] & ~bit
            buckets[h + p] = rest
            active[base + p] &= ~(bit | (rest & alone))
    if value != ZERO:
        h = bucket_at(lanes, f, value)
        some = ZERO
        for q in range(count):
            some |= buckets[h + np.uint64(q)]
        shared = opaque(ZERO - ((some | opaque(ZERO - some)) >> _LOW))
        for q in range(count):
            p = np.uint64(q)
            rest = buckets[h + p] | bit_in(lanes, p, slot)
            buckets[h + p] = rest
            active[base + p] |= rest & shared


@compiled
def put(s: Arena, f: np.uint64, slot: np.uint64, value: np.uint64) -> None:
    """Set factor f of a slot, and bring buckets and active sets up to date; 0 takes it out."""
    place(s.lanes, s.x, s.buckets, s.active, f, slot, value)


@compiled
def drop(s: Arena, slot: np.uint64) -> None:
    """Free a slot."""
    for f in range(3):
        put(s, np.uint64(f), slot, ZERO)
    s.live[lane_of(s, slot)] &= ~bit_of(slot)
    s.tally[RANK] -= 1


@compiled
def add(s: Arena, slot: np.uint64, a: np.uint64, b: np.uint64, c: np.uint64) -> None:
    """Put a term into a free slot."""
    put(s, np.uint64(0), slot, a)
    put(s, np.uint64(1), slot, b)
    put(s, np.uint64(2), slot, c)
    s.live[lane_of(s, slot)] |= bit_of(slot)
    s.tally[RANK] += 1


@compiled
def load(s: Arena, terms: Words) -> None:
    """Replace all terms by others of the same number of slots."""
    s.buckets[:] = ZERO
    s.active[:] = ZERO
    s.live[:] = ZERO
    s.x[:] = ZERO
    s.tally[RANK] = 0
    slots = 64 * len(s.lanes)
    for slot in range(slots):
        if terms[slot] != ZERO:
            add(s, np.uint64(slot), terms[slot], terms[slots + slot], terms[2 * slots + slot])
            if len(s.ring) == 3:
                s.x[3 * slots + slot] = terms[3 * slots + slot]
    s.tally[WALK_BEST] = s.tally[RANK]
    s.tally[WALK_STEPS] = 0
    s.tally[TRAPPED] = 0
    s.tally[SINCE] = 0
    s.tally[MISSES] = 0


@compiled
def value_at(s: Arena, f: int, slot: int) -> np.uint64:
    """Factor f of a slot, 0 where it is free."""
    return s.x[place_of(s.lanes, np.uint64(f), np.uint64(slot))]


@compiled
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
def free_slot(s: Arena) -> np.uint64:
    """The lowest free slot, or the number of slots where there is none."""
    for q in range(len(s.lanes)):
        if ~s.live[q] != ZERO:
            return (np.uint64(q) << _SIX) + first_bit(~s.live[q])
    return np.uint64(64 * len(s.lanes))

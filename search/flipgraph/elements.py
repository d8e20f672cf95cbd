"""Terms and orbits in the slots of an arena, compiled for every ring and symmetry: read, set, dropped, counted.

An element is three factors, or matrices, at the positions 0 to 2 of a slot: a term, or the first of the terms that a
symmetry group makes of it. The group is the length of `SlotKind.turns`:

1: none. A slot is a term.
2: an involution, in the layout of `involution.mirrored_layout`, where it reverses the bits: "reversal" below. A slot is
   a term and its image, or a term that is its own image.
3: the cyclic shift. A slot is three terms. The positions have common buckets, and are nodes p slots + s of a set: so an
   arena has 3 L lanes, L words a position, and one factor. Cubes follow the nodes in `x` and never flip.
6: both. A slot is six terms, or three that are their own reversals.
"""

from __future__ import annotations

import numpy as np

from ..terms.bits import compiled, reverse_bits
from ..terms.rings import GF2, ZERO, Value, sign_of, turned
from ..terms.words import Words
from .slots import RANK, SlotKind, WordArena, clear, is_live, place, set_live, set_out, term_sign, turn_term


@compiled(forceinline=True)
def alike(kind: SlotKind, a: np.uint64, b: np.uint64, c: np.uint64) -> bool:
    """Return whether an element is its own reversal, matrix by matrix; False in a walk without reversal."""
    if len(kind.turns) % 2 == 1:
        return False
    return (a ^ reverse_bits(a)) | (b ^ reverse_bits(b)) | (c ^ reverse_bits(c)) == ZERO


@compiled(internal=True)
def is_alike(s: WordArena, slot: int) -> bool:
    """Return whether the element of a slot is its own reversal."""
    slots = 64 * len(s.live)
    return alike(s.kind, s.x[slot], s.x[slots + slot], s.x[2 * slots + slot])


@compiled(forceinline=True)
def value_of(s: WordArena, words: Words, p: int, slot: int) -> Value:
    """Return the factor at a position of a slot in words of the layout of `WordArena.x`."""
    at = p * 64 * len(s.live) + slot
    if len(s.kind.ring) == GF2:
        return words[at], ZERO
    return words[at], words[at + 192 * len(s.live)]


@compiled(forceinline=True)
def image(s: WordArena, turn: int, p: int, slot: int) -> Value:
    """Return the factor at a position after the group's element of number `turn`, 0 being the identity."""
    value = value_of(s, s.x, p if len(s.kind.turns) == 2 else (p + turn) % 3, slot)
    if len(s.kind.turns) % 2 == 0 and turn >= len(s.kind.turns) // 2:
        return reverse_bits(value[0]), ZERO
    return value


@compiled(internal=True)
def put(s: WordArena, p: int, slot: int, value: Value) -> None:
    """Set the factor at a position to a value that need not be canonical, and update buckets and active sets."""
    sign = sign_of(s.kind.ring, value)
    f, node = np.uint64(p), np.uint64(slot)
    if len(s.kind.turns) % 3 == 0:
        f, node = ZERO, np.uint64(p * 64 * len(s.live) + slot)
    place(s.kind, s.x, s.buckets, s.active, f, node, turned(s.kind.ring, value, sign))
    turn_term(s.kind, s.x, np.uint64(slot), sign)


@compiled(internal=True)
def drop(s: WordArena, slot: int) -> None:
    """Free a slot."""
    for p in range(3):
        put(s, p, slot, (ZERO, ZERO))
    turn_term(s.kind, s.x, np.uint64(slot), term_sign(s.kind, s.x, np.uint64(slot)))
    set_live(s.live, np.uint64(slot), False)


@compiled(internal=True)
def count_rank(s: WordArena) -> None:
    """Recount the terms."""
    total, few = 0, 3 if len(s.kind.turns) % 3 == 0 else 1
    for slot in range(64 * len(s.live)):
        if is_live(s.live, np.uint64(slot)):
            total += few if len(s.kind.turns) % 2 == 1 or is_alike(s, slot) else 2 * few
    for q in range(192 * len(s.live), len(s.x) if len(s.kind.ring) == GF2 else 0):  # the cubes
        total += s.x[q] != ZERO
    s.counters[RANK] = total


@compiled(internal=True)
def load(s: WordArena, terms: Words) -> None:
    """Replace all elements and cubes by others, in the layout of `WordArena.x`."""
    clear(s)
    slots = 64 * len(s.live)
    for slot in range(slots):
        if terms[slot] != ZERO:
            for p in range(3):
                put(s, p, slot, value_of(s, terms, p, slot))
            turn_term(s.kind, s.x, np.uint64(slot), term_sign(s.kind, terms, np.uint64(slot)))
            set_live(s.live, np.uint64(slot), True)
    for q in range(3 * slots, len(s.x) if len(s.kind.ring) == GF2 else 0):
        s.x[q] = terms[q]
    count_rank(s)
    set_out(s)

"""Reductions by linear dependence over GF(2), compiled."""

from __future__ import annotations

import numpy as np

from ..terms.bits import ONE, compiled, popcount
from ..terms.packed import Words
from ..terms.rings import ZERO
from .elements import count_rank, drop, put
from .slots import REDUCTIONS, WordArena, bucket_at, place_of

_THREE = np.uint64(3)


@compiled
def reduce_dependent(s: WordArena) -> bool:
    """Remove one term whose factor is a sum of those of other terms that share another factor with it.

    For terms a b_t c_t with b_j = sum of some b_t, c_j is added to those c_t and term j is dropped.
    Of groups of more than 64 terms the first 64 are used. Returns whether there was such a term.
    """
    slots = 64 * len(s.kind.lanes)
    members, rows, masks = s.scratch[0], s.scratch[1], s.scratch[2]
    for f in range(3):
        for first in range(slots):
            value = word_at(s, np.uint64(f), np.uint64(first))
            if value == ZERO or crowd(s, np.uint64(f), value) < _THREE:
                continue
            size = 0
            for t in range(slots):
                if word_at(s, np.uint64(f), np.uint64(t)) == value and size < 64:
                    if size == 0 and t != first:
                        break
                    members[size] = t
                    size += 1
            if size < 3:
                continue
            for g in range(3):
                if g == f:
                    continue
                for t in range(size):
                    word, mask = word_at(s, np.uint64(g), members[t]), ONE << np.uint64(t)
                    for q in range(t):
                        if word ^ rows[q] < word:
                            word ^= rows[q]
                            mask ^= masks[q]
                    if word == ZERO:
                        absorb(s, 3 - f - g, members, t, mask)
                        return True
                    rows[t] = word
                    masks[t] = mask
    return False


@compiled
def no_dependence(s: WordArena) -> bool:
    """Return False: the walk has no reductions by dependence."""
    return False


@compiled
def word_at(s: WordArena, f: np.uint64, slot: np.uint64) -> np.uint64:
    """Return factor f of a slot, 0 if it is free."""
    return s.x[place_of(s.kind, f, slot)]


@compiled
def crowd(s: WordArena, f: np.uint64, value: np.uint64) -> np.uint64:
    """Return the number of slots in the bucket of a factor value."""
    h, total = bucket_at(s.kind, f, (value, ZERO)), ZERO
    for q in range(len(s.kind.lanes)):
        total += popcount(s.buckets[h + np.uint64(q)])
    return total


@compiled
def absorb(s: WordArena, e: int, members: Words, last: int, mask: np.uint64) -> None:
    """Add factor e of members[last] to that of every other member in the mask, and drop members[last]."""
    value = word_at(s, np.uint64(e), members[last])
    for t in range(last):
        if (mask >> np.uint64(t)) & ONE != ZERO:
            put(s, e, np.int64(members[t]), (word_at(s, np.uint64(e), members[t]) ^ value, ZERO))
    drop(s, np.int64(members[last]))
    s.counters[REDUCTIONS] += 1
    count_rank(s)

"""Linear systems over GF(2) and GF(3) in packed rows, compiled.

A row is (planes, words) uint64: over GF(2) one plane, over GF(3) the mask of entries 1 and that of entries -1.
"""

from __future__ import annotations

import numpy as np

from ...schemes_db.factor import IntArray
from ..terms.bits import ONE, compiled, popcount
from ..terms.packed import Words
from ..terms.rings import GF2, ZERO, Ring, Value, added, turned

_SIX, _LOW = np.uint64(6), np.uint64(63)


@compiled
def set_entry(row: Words, place: int, value: int) -> None:
    """Set one entry, which must be zero before, to a number modulo the characteristic: 1, -1 or 0."""
    at = np.uint64(place)
    if value != 0:
        plane = 1 if value < 0 and len(row) > 1 else 0
        row[plane, at >> _SIX] |= ONE << (at & _LOW)


@compiled(forceinline=True)
def word_of(ring: Ring, row: Words, q: int) -> Value:
    """Return word q of all planes."""
    return row[0, q], (ZERO if len(ring) == GF2 else row[1, q])


@compiled
def add_row(ring: Ring, goal: Words, row: Words, sign: np.uint64, first: int) -> None:
    """Add a row times a sign to another one, from word `first` on."""
    for q in range(first, row.shape[1]):
        up, down, _ = added(ring, word_of(ring, goal, q), turned(ring, word_of(ring, row, q), sign))
        goal[0, q] = up
        if len(ring) != GF2:
            goal[1, q] = down


@compiled(nogil=True)
def eliminate(ring: Ring, rows: Words, columns: int, pivots: IntArray) -> int:
    """Reduce the first `columns` entries of packed rows to reduced echelon form, in place; return the rank.

    `rows` is (equations, planes, words); the row operations also apply to the entries after the columns
    (an identity there records the combination of equations of each row). `pivots[p]` becomes the pivot
    column of row p; columns are tried in order, so earlier ones are preferred as pivots.
    """
    count, planes, words = rows.shape
    rank = 0
    for column in range(columns):
        if rank == count:
            break
        word, shift = column >> 6, np.uint64(column & 63)
        found = -1
        for r in range(rank, count):
            if ((rows[r, 0, word] | rows[r, planes - 1, word]) >> shift) & ONE != ZERO:
                found = r
                break
        if found < 0:
            continue
        # A row with pivot -1 is negated as it is moved to its position.
        turn = planes > 1 and (rows[found, planes - 1, word] >> shift) & ONE != ZERO
        for plane in range(planes):
            other = planes - 1 - plane if turn else plane
            if plane <= other:
                for q in range(words):
                    mine, partner = rows[found, plane, q], rows[found, other, q]
                    rows[found, plane, q], rows[found, other, q] = partner, mine
        if found != rank:
            for plane in range(planes):
                for q in range(words):
                    rows[found, plane, q], rows[rank, plane, q] = rows[rank, plane, q], rows[found, plane, q]
        for r in range(count):
            if r != rank and ((rows[r, 0, word] | rows[r, planes - 1, word]) >> shift) & ONE != ZERO:
                minus = (rows[r, 0, word] >> shift) & ONE != ZERO
                add_row(ring, rows[r], rows[rank], ~ZERO if minus else ZERO, word)
        pivots[rank] = column
        rank += 1
    return rank


@compiled
def combined(ring: Ring, row: Words, offset: int, right: Words) -> int:
    """Return the combination of right-hand sides recorded in a row's augmented identity, modulo the characteristic.

    The identity starts at word `offset`. The result is 0 or 1 over GF(2), -1, 0 or 1 over GF(3).
    """
    total, less = ZERO, ZERO
    for q in range(right.shape[1]):
        (up, down), (more, fewer) = word_of(ring, row, offset + q), word_of(ring, right, q)
        total += popcount(up & more) + popcount(down & fewer)
        less += popcount(up & fewer) + popcount(down & more)
    if len(ring) == GF2:
        return np.int64(total & ONE)  # type: ignore[return-value]  # compiled, it is one
    digit = (np.int64(total) - np.int64(less)) % 3
    return digit - 3 if digit > 1 else digit  # type: ignore[return-value]

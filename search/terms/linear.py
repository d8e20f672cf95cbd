"""Linear systems over GF(2) and GF(3) in packed rows, compiled.

A row is (planes, words) uint64: over GF(2) one plane, over GF(3) the mask of entries 1 and that of entries -1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...schemes_db.factor import IntArray
from .bits import ONE, compiled, popcount
from .packed import Words
from .rings import GF2, ZERO, Ring, Value, added, turned

Digits = npt.NDArray[np.int8]

_SIX, _LOW = np.uint64(6), np.uint64(63)


@compiled
def set_entry(row: Words, place: int, value: int) -> None:
    """Set one entry, which must be zero before, to a number modulo the characteristic: 1, -1 or 0."""
    at = np.uint64(place)
    if value != 0:
        plane = 1 if value < 0 and len(row) > 1 else 0
        row[plane, at >> _SIX] |= ONE << (at & _LOW)


@compiled(forceinline=True)
def entry(row: Words, place: int) -> int:
    """Return one entry: 0 or 1 over GF(2), -1, 0 or 1 over GF(3)."""
    at = np.uint64(place)
    value = np.int64((row[0, at >> _SIX] >> (at & _LOW)) & ONE)
    if len(row) > 1:
        value -= np.int64((row[1, at >> _SIX] >> (at & _LOW)) & ONE)
    return value  # type: ignore[return-value]  # compiled, it is one


@compiled(forceinline=True)
def word_of(ring: Ring, row: Words, q: int) -> Value:
    """Return word q of all planes."""
    return row[0, q], (ZERO if len(ring) == GF2 else row[1, q])


@compiled
def add_after(ring: Ring, goal: Words, row: Words, sign: np.uint64, place: int) -> None:
    """Add the entries of a row after a place, times a sign, to those of another row."""
    first = place >> 6
    mask = ~(((ONE << (np.uint64(place) & _LOW)) << ONE) - ONE)
    for q in range(first, row.shape[1]):
        up, down = turned(ring, word_of(ring, row, q), sign)
        up, down, _ = added(ring, word_of(ring, goal, q), (up & mask, down & mask))
        goal[0, q] = up
        if len(ring) != GF2:
            goal[1, q] = down
        mask = ~ZERO


@compiled(nogil=True)
def decompose(ring: Ring, rows: Words, columns: int, order: IntArray, pivots: IntArray) -> int:
    """Decompose packed rows (equations, planes, words) into triangles L U in place, by elimination; return the rank.

    Row p has its pivot in column pivots[p]; U has its entries from there on, L its multiplier of row p in the same
    column of all later rows. `order` records which equation a row is. Columns are tried in order, so earlier ones are
    preferred as pivots.
    """
    count, planes, words = rows.shape
    for r in range(count):
        order[r] = r
    rank = 0
    for column in range(columns):
        if rank == count:
            break
        found = rank
        while found < count and entry(rows[found], column) == 0:
            found += 1
        if found == count:
            continue
        if found != rank:
            order[found], order[rank] = order[rank], order[found]
            for plane in range(planes):
                for q in range(words):
                    rows[found, plane, q], rows[rank, plane, q] = rows[rank, plane, q], rows[found, plane, q]
        pivot = entry(rows[rank], column)
        at, bit = column >> 6, ONE << np.uint64(column & 63)
        for r in range(found + 1, count):
            times = entry(rows[r], column) * pivot
            if times != 0:
                add_after(ring, rows[r], rows[rank], ~ZERO if times > 0 else ZERO, column)
                if planes > 1 and pivot < 0:  # the multiplier is minus the entry
                    rows[r, 0, at] ^= bit
                    rows[r, 1, at] ^= bit
        pivots[rank] = column
        rank += 1
    return rank


@compiled
def product(ring: Ring, row: Words, vector: Words) -> int:
    """Return the inner product of a row and a packed vector: 0 or 1 over GF(2), -1, 0 or 1 over GF(3)."""
    total, less = ZERO, ZERO
    for q in range(vector.shape[1]):
        (up, down), (more, fewer) = word_of(ring, row, q), word_of(ring, vector, q)
        total += popcount(up & more) + popcount(down & fewer)
        less += popcount(up & fewer) + popcount(down & more)
    if len(ring) == GF2:
        return np.int64(total & ONE)  # type: ignore[return-value]  # compiled, it is one
    digit = (np.int64(total) - np.int64(less)) % 3
    return digit - 3 if digit > 1 else digit  # type: ignore[return-value]  # as above


@compiled
def digit_of(ring: Ring, value: int) -> int:
    """Reduce a number modulo the characteristic: 0 or 1 over GF(2), -1, 0 or 1 over GF(3)."""
    if len(ring) == GF2:
        return value & 1
    digit = value % 3
    return digit - 3 if digit > 1 else digit


@compiled
def solve(
    ring: Ring, rows: Words, rank: int, order: IntArray, pivots: IntArray, right: Digits, vector: Words, found: Digits
) -> bool:
    """Solve the decomposed equations with right-hand sides (equations,); return whether there is a solution.

    The values of the unknowns of the pivots are set in `found`, the others are zero. `vector`, a row, is scratch.
    """
    vector[:] = ZERO
    for r in range(len(rows)):
        digit = digit_of(ring, right[order[r]] - product(ring, rows[r], vector))
        if r >= rank and digit != 0:
            return False
        if r < rank:
            found[r] = digit
            set_entry(vector, pivots[r], digit)
    vector[:] = ZERO
    for p in range(rank - 1, -1, -1):
        digit = found[p] - product(ring, rows[p], vector)
        found[p] = digit_of(ring, digit * entry(rows[p], pivots[p]))
        set_entry(vector, pivots[p], found[p])
    return True

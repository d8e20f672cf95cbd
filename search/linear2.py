"""Linear systems over GF(2) in packed rows, compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .bits import ONE, compiled, popcount
from .packed import Words

_ZERO, _SIX, _LOW = np.uint64(0), np.uint64(6), np.uint64(63)


@compiled
def set_bit(row: Words, bit: int) -> None:
    """Set one bit of a packed row."""
    place = np.uint64(bit)
    row[place >> _SIX] |= ONE << (place & _LOW)


@compiled(nogil=True)
def eliminate(rows: Words, columns: int, pivots: npt.NDArray[np.int64]) -> int:
    """Bring the first `columns` bits of packed rows to reduced echelon form, in place; returns the rank.

    `rows` is (equations, words) uint64, with whatever stands behind the columns carried along (an
    identity, so that its bits say which equations a row is the sum of). `pivots[p]` becomes the pivot
    column of row p; columns are tried in order, so the first ones become pivots where they can.
    """
    count, words = rows.shape
    rank = 0
    for column in range(columns):
        if rank == count:
            break
        word, shift = column >> 6, np.uint64(column & 63)
        found = -1
        for r in range(rank, count):
            if (rows[r, word] >> shift) & ONE != _ZERO:
                found = r
                break
        if found < 0:
            continue
        if found != rank:
            for q in range(words):
                rows[found, q], rows[rank, q] = rows[rank, q], rows[found, q]
        for r in range(count):
            if r != rank and (rows[r, word] >> shift) & ONE != _ZERO:
                for q in range(word, words):
                    rows[r, q] ^= rows[rank, q]
        pivots[rank] = column
        rank += 1
    return rank


@compiled
def combined(row: Words, offset: int, right: Words) -> bool:
    """The sum of the right-hand sides that a row's carried identity names; it starts at word `offset`."""
    total = _ZERO
    for q in range(len(right)):
        total += popcount(row[offset + q] & right[q])
    return total & ONE != _ZERO

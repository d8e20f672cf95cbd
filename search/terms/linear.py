"""Linear systems over GF(2) and GF(3) in packed rows, compiled.

A row is (planes, words) uint64: over GF(2) one plane, over GF(3) the mask of entries 1 and that of entries -1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...schemes_db.factor import IntArray
from .bits import ONE, compiled, first_bit, popcount
from .rings import GF2, ZERO, Ring, Value, added, turned
from .words import WORD_BITS, Words

Digits = npt.NDArray[np.int8]

GROUP, STRIP = 8, 32
"""Pivots of a table, and words of a row that are treated together: 8 tables of 64 kB fit a second-level cache."""

_SIX, _LOW = np.uint64(6), np.uint64(63)


@compiled(internal=True)
def add_entry(row: Words, place: int, value: int) -> None:
    """Add a number modulo the characteristic, 1, -1 or 0, to one entry, which must be zero before over GF(3)."""
    at = np.uint64(place)
    if value != 0:
        plane = 1 if value < 0 and len(row) > 1 else 0
        row[plane, at >> _SIX] ^= ONE << (at & _LOW)


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


@compiled(internal=True)
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


def decompose(ring: Ring, rows: Words, columns: int) -> tuple[int, IntArray, IntArray]:
    """Decompose packed rows (equations, planes, words) into triangles L U in place, by elimination.

    Row p has its pivot in column pivots[p]; U has its entries from there on, L its multiplier of row p in the same
    column of all later rows. Columns are tried in order, so earlier ones are preferred as pivots.

    Returns the rank, `order` (equations,), which equation a row is, and `pivots` (columns,).
    """
    order, pivots = np.arange(len(rows), dtype=np.int64), np.zeros(columns, dtype=np.int64)
    if len(ring) != GF2:
        return int(decompose_by_columns(ring, rows, columns, order, pivots)), order, pivots
    panel = np.empty((2, len(rows)), dtype=np.uint64)
    table = np.empty((WORD_BITS // GROUP, 1 << GROUP, STRIP), dtype=np.uint64)
    return int(_decompose_by_words(rows[:, 0], columns, order, pivots, panel, table)), order, pivots


@compiled(internal=True)
def _exchange(rows: Words, order: IntArray, one: int, other: int) -> None:
    """Exchange two rows (words,) of rows."""
    order[one], order[other] = order[other], order[one]
    for q in range(rows.shape[1]):
        rows[one, q], rows[other, q] = rows[other, q], rows[one, q]


@compiled(nogil=True)
def decompose_by_columns(ring: Ring, rows: Words, columns: int, order: IntArray, pivots: IntArray) -> int:
    """Decompose rows column by column."""
    count, planes = rows.shape[:2]
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
            _exchange(rows.reshape(count, -1), order, found, rank)
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


@compiled(nogil=True)
def _decompose_by_words(
    rows: Words, columns: int, order: IntArray, pivots: IntArray, panel: Words, table: Words
) -> int:
    """Decompose rows (equations, words) over GF(2), 64 columns at a time, by the method of the four Russians.

    A word of all rows is eliminated first; the bits that it has in the columns of pivots are multipliers, and say which
    rows of pivots are to be added in the words after it. Tables (64 / GROUP, 2^GROUP, STRIP) of all sums of GROUP of
    them do that for GROUP bits at once. `panel` (2, equations) has that word, and its multipliers side by side.

    Source: Albrecht, Bard, Hart, "Algorithm 898: efficient multiplication of dense matrices over GF(2)" (2010).
    """
    count, words = rows.shape
    word, times = panel
    rank = 0
    for w in range(words):
        first = rank
        for r in range(first, count):
            word[r] = rows[r, w]
        for bit in range(min(64, columns - 64 * w)):
            at = np.uint64(bit)
            found = rank
            while found < count and (word[found] >> at) & ONE == ZERO:
                found += 1
            if found == count:
                continue
            if found != rank:
                _exchange(rows, order, found, rank)
                word[found], word[rank] = word[rank], word[found]
            later = word[rank] & ~(((ONE << at) << ONE) - ONE)
            for r in range(found + 1, count):
                word[r] ^= later & (ZERO - ((word[r] >> at) & ONE))
            pivots[rank] = 64 * w + bit
            rank += 1
        for r in range(first, count):
            rows[r, w] = word[r]
            times[r] = ZERO
            for p in range(first, rank):
                times[r] |= ((word[r] >> np.uint64(pivots[p] & 63)) & ONE) << np.uint64(p - first)
        for start in range(w + 1, words, len(table[0, 0])):
            _add_pivots(rows[:, start : start + len(table[0, 0])], first, rank, times, table)
    return rank


@compiled(internal=True)
def _add_pivots(strip: Words, first: int, rank: int, times: Words, table: Words) -> None:
    """Add the rows of pivots, `first` to `rank` (excluded), to later rows of a strip, by the bits of `times`."""
    size = strip.shape[1]
    for p in range(first, rank):  # rows of pivots depend on earlier ones
        for q in range(first, p):
            if (times[p] >> np.uint64(q - first)) & ONE != ZERO:
                for k in range(size):
                    strip[p, k] ^= strip[q, k]
    groups = 0
    for group in range(first, rank, GROUP):
        table[groups, 0, :size] = ZERO
        for n in range(1, 1 << min(GROUP, rank - group)):
            lowest = group + np.int64(first_bit(np.uint64(n)))
            for k in range(size):
                table[groups, n, k] = table[groups, n & (n - 1), k] ^ strip[lowest, k]
        groups += 1
    for r in range(rank, len(strip)):
        for g in range(groups):
            n = (times[r] >> np.uint64(GROUP * g)) & np.uint64((1 << GROUP) - 1)
            if n != ZERO:
                for k in range(size):
                    strip[r, k] ^= table[g, n, k]


@compiled
def product(ring: Ring, row: Words, vector: Words) -> int:
    """Return the inner product of a row and a packed vector: 0 or 1 over GF(2), -1, 0 or 1 over GF(3)."""
    total, less = ZERO, ZERO
    for q in range(vector.shape[1]):
        (up, down), (more, fewer) = word_of(ring, row, q), word_of(ring, vector, q)
        total += popcount(up & more) + popcount(down & fewer)
        less += popcount(up & fewer) + popcount(down & more)
    return digit_of(ring, np.int64(total) - np.int64(less))


@compiled(internal=True)
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
            add_entry(vector, pivots[r], digit)
    vector[:] = ZERO
    for p in range(rank - 1, -1, -1):
        digit = found[p] - product(ring, rows[p], vector)
        found[p] = digit_of(ring, digit * entry(rows[p], pivots[p]))
        add_entry(vector, pivots[p], found[p])
    return True

"""Linear combinations of blocks: every block row is read from memory once, whatever the number of sums."""

from __future__ import annotations

import numpy as np

from ...jit import njit
from .rows import LINE_BYTES, settle, sum_rows

STREAMED = 1 << 24
"""Bytes of sums from which they bypass the caches: they would be evicted before they are read."""

STRIP = 64
"""Rows of a block are added together up to so many elements, with addresses computed for all at once. Longer strips of
16 blocks exceed the first-level cache. Measured on one core of an AMD EPYC, GF(2): sums of 4x4x4:47 at 4096 take 0.6
times as long as row by row.
"""


@njit(nogil=True)
def sum_blocks(source, froms, target, tos, block, starts, places, values, modulus, first, last):
    """Compute rows first <= i < last of the blocks of target (rows, cols), of block[0] rows and block[1] elements.

    The block that begins at the row and column tos[s] is the sum, as of `rows.sum_rows`, of those of source that begin
    at froms[places[p]], starts[s] <= p < starts[s + 1]: of words over GF(2), or of multiples of integer-valued floats.
    Blocks are cut at the edges of target, and must be inside source.
    """
    rows, cols = target.shape
    table = np.empty(len(froms), np.int64)
    aligned = past_caches(target, block[1])
    strip = max(1, STRIP // block[1])
    for begin in range(first, last, strip):
        for s in range(len(starts) - 1):
            row, column = tos[s, 0] + begin, tos[s, 1]
            if row >= rows or column >= cols:
                continue
            terms = starts[s + 1] - starts[s]
            for t in range(terms):
                top, left = froms[places[starts[s] + t]]
                table[t] = source.ctypes.data + (top + begin) * source.strides[0] + source.itemsize * left
            address = target.ctypes.data + row * target.strides[0] + target.itemsize * column
            length = min(block[1], cols - column)
            streaming = aligned and target.itemsize * length % LINE_BYTES == 0
            # Addresses, because counting the references of a slice waits for pending stores that bypass the caches.
            for _ in range(min(strip, last - begin, rows - row)):
                sum_rows(table, values, starts[s], terms, modulus, address, length, streaming)
                address += target.strides[0]
                for t in range(terms):
                    table[t] += source.strides[0]
    settle()


@njit(nogil=True)
def past_caches(matrix, width):
    """Return whether blocks with rows of so many entries bypass the caches: they are large and of whole cache lines."""
    aligned = matrix.ctypes.data % LINE_BYTES == 0 and matrix.itemsize * width % LINE_BYTES == 0
    for stride in matrix.strides[:-1]:
        aligned &= stride % LINE_BYTES == 0
    return aligned and matrix.itemsize * matrix.size >= STREAMED


@njit(nogil=True)
def add_reduced(product, modulus, out, first, last):
    """Compute out += product, reduced, in rows first <= i < last."""
    inverse = 1.0 / modulus
    for i in range(first, last):
        target, source = out[i], product[i]
        for j in range(len(target)):
            total = target[j] + source[j]
            target[j] = total - modulus * np.rint(total * inverse)


@njit(nogil=True)
def reduce_rows(matrix, modulus, first, last):
    """Reduce rows first <= i < last of integers to residues of magnitude at most modulus / 2 + 2, in place.

    With |x| + modulus at most 2^53 (2^24 in float32) modulus * q and the difference are integers in that range, so
    exact, and the error of x / modulus is at most 2 / modulus.
    """
    inverse = 1.0 / modulus
    for i in range(first, last):
        row = matrix[i]
        for j in range(len(row)):
            row[j] -= modulus * np.rint(row[j] * inverse)

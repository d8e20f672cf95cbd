"""Linear combinations of blocks: every block row is read from memory once, whatever the number of sums."""

from __future__ import annotations

import numpy as np

from ...jit import njit
from .rows import LINE_BYTES, float_rows, settle, xor_rows

STREAMED = 1 << 24
"""Bytes of sums from which they bypass the caches: they would be evicted before they are read."""

STRIP_WORDS = 64
"""Rows of a block are added together up to so many words, with addresses computed for all at once. Longer strips of 16
blocks exceed the first-level cache. Measured on one core of an AMD EPYC: sums of 4x4x4:47 at 4096 take 0.6 times as
long as row by row.
"""


@njit(nogil=True)
def xor_blocks(source, froms, target, tos, block, starts, places, first, last):
    """Compute rows first <= i < last of the blocks of target (rows, words), of block[0] rows and block[1] words.

    The block that begins at the row and word tos[s] is the sum of the blocks of source (rows, words) that begin at
    froms[p], p in places[starts[s]:starts[s + 1]]. Blocks are cut at the edges of target, and must be inside source.
    """
    rows, words = target.shape
    table = np.empty(len(froms), np.int64)
    aligned = past_caches(target, block[1])
    strip = max(1, STRIP_WORDS // block[1])
    for begin in range(first, last, strip):
        for s in range(len(starts) - 1):
            row, column = tos[s, 0] + begin, tos[s, 1]
            if row >= rows or column >= words:
                continue
            for position in range(starts[s], starts[s + 1]):
                top, left = froms[places[position]]
                place = source.ctypes.data + (top + begin) * source.strides[0] + 8 * left
                table[position - starts[s]] = place
            address = target.ctypes.data + row * target.strides[0] + 8 * column
            shape = min(strip, last - begin, rows - row), min(block[1], words - column)
            strides = source.strides[0], target.strides[0]
            streaming = aligned and 8 * shape[1] % LINE_BYTES == 0
            xor_strip(table, starts[s + 1] - starts[s], address, strides, shape, streaming)
    settle()


@njit(nogil=True)
def xor_strip(table, terms, target, strides, shape, streaming):
    """Set the strip of rows at an address to the sum of those at the addresses table[:terms], which are advanced.

    `strides` are bytes between rows of a source and of the target, `shape` rows and words. Addresses, because counting
    the references of a slice waits for pending stores that bypass the caches.
    """
    for _ in range(shape[0]):
        xor_rows(table, terms, target, shape[1], streaming)
        target += strides[1]
        for t in range(terms):
            table[t] += strides[0]


@njit(nogil=True)
def past_caches(matrix, width):
    """Return whether blocks with rows of so many entries bypass the caches: they are large and of whole cache lines."""
    aligned = matrix.ctypes.data % LINE_BYTES == 0 and matrix.itemsize * width % LINE_BYTES == 0
    for stride in matrix.strides[:-1]:
        aligned &= stride % LINE_BYTES == 0
    return aligned and matrix.itemsize * matrix.size >= STREAMED


@njit(nogil=True)
def float_blocks(source, froms, target, tos, block, starts, places, values, modulus, each, first, last):
    """Compute as `xor_blocks` the sums of multiples by `values` of blocks of integer-valued floats.

    With a modulus every sum is reduced to the residue of least magnitude; with `each` every multiple is, too.
    """
    rows, cols = target.shape
    table = np.empty(len(froms), np.int64)
    aligned = past_caches(target, block[1])
    for i in range(first, last):
        for s in range(len(starts) - 1):
            row, column = tos[s, 0] + i, tos[s, 1]
            if row >= rows or column >= cols:
                continue
            length = min(block[1], cols - column)
            if each:
                total = target[row, column : column + length]
                total[:] = 0
                for position in range(starts[s], starts[s + 1]):
                    top, left = froms[places[position]]
                    add_multiple(source[top + i, left : left + length], values[position], modulus, total)
                reduce_row(total, modulus, 1.0 / modulus)
                continue
            terms = starts[s + 1] - starts[s]
            for t in range(terms):
                top, left = froms[places[starts[s] + t]]
                table[t] = source.ctypes.data + (top + i) * source.strides[0] + source.itemsize * left
            address = target.ctypes.data + row * target.strides[0] + target.itemsize * column
            streaming = aligned and target.itemsize * length % LINE_BYTES == 0
            float_rows(table, values, starts[s], terms, modulus, address, length, streaming)
    settle()


@njit(nogil=True)
def add_multiple(source, value, modulus, target):
    """Compute target += value * source, reduced before the addition."""
    inverse = 1.0 / modulus
    for j in range(len(target)):
        product = value * source[j]
        target[j] += product - modulus * np.rint(product * inverse)


@njit(nogil=True)
def reduce_row(row, modulus, inverse):
    """Reduce integers to residues of magnitude at most modulus / 2 + 2, in place.

    With |x| + modulus at most 2^53 (2^24 in float32) modulus * q and the difference are integers in that range, so
    exact, and the error of x / modulus is at most 2 / modulus.
    """
    for j in range(len(row)):
        row[j] -= modulus * np.rint(row[j] * inverse)


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
    """Reduce rows first <= i < last in place."""
    for i in range(first, last):
        reduce_row(matrix[i], modulus, 1.0 / modulus)

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
def xor_sums(matrix, grid, block, starts, places, sums, first, last):
    """Compute rows first <= i < last of sums (R, rows, words): slab r sums the blocks places[starts[r]:starts[r+1]].

    `matrix` (rows, words) consists of grid[0] x grid[1] whole blocks of block[0] rows and block[1] words.
    """
    height, width = block
    table = np.empty(grid[0] * grid[1], np.int64)
    streaming = past_caches(sums, width)
    strip = max(1, STRIP_WORDS // width)
    for begin in range(first, last, strip):
        shape = min(strip, last - begin), width
        for r in range(len(starts) - 1):
            for position in range(starts[r], starts[r + 1]):
                row = places[position] // grid[1] * height + begin
                column = places[position] % grid[1] * width
                table[position - starts[r]] = matrix.ctypes.data + row * matrix.strides[0] + 8 * column
            target = sums.ctypes.data + r * sums.strides[0] + begin * sums.strides[1]
            strides = matrix.strides[0], sums.strides[1]
            xor_strip(table, starts[r + 1] - starts[r], target, strides, shape, streaming)
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
def pad_rows(matrix, padded, first, last):
    """Copy rows first <= i < last of the matrix to padded, with zeros beyond its edges."""
    rows, cols = matrix.shape
    for i in range(first, last):
        inside = cols if i < rows else 0
        for j in range(inside):
            padded[i, j] = matrix[i, j]
        padded[i, inside:] = 0


@njit(nogil=True)
def xor_merge(slabs, grid, block, starts, places, matrix, first, last):
    """Compute block rows first <= i < last of matrix: block q sums the slabs places[starts[q]:starts[q+1]]."""
    rows, words = matrix.shape
    height, width = block
    table = np.empty(len(slabs), np.int64)
    aligned = past_caches(matrix, width)
    strip = max(1, STRIP_WORDS // width)
    for begin in range(first, last, strip):
        for q in range(len(starts) - 1):
            row, column = q // grid[1] * height + begin, q % grid[1] * width
            if row >= rows or column >= words:
                continue
            for position in range(starts[q], starts[q + 1]):
                source = slabs.ctypes.data + places[position] * slabs.strides[0] + begin * slabs.strides[1]
                table[position - starts[q]] = source
            target = matrix.ctypes.data + row * matrix.strides[0] + 8 * column
            shape = min(strip, last - begin, rows - row), min(width, words - column)
            strides = slabs.strides[1], matrix.strides[0]
            streaming = aligned and 8 * shape[1] % LINE_BYTES == 0
            xor_strip(table, starts[q + 1] - starts[q], target, strides, shape, streaming)
    settle()


@njit(nogil=True)
def past_caches(matrix, width):
    """Return whether blocks with rows of so many entries bypass the caches: they are large and of whole cache lines."""
    aligned = matrix.ctypes.data % LINE_BYTES == 0 and matrix.itemsize * width % LINE_BYTES == 0
    for stride in matrix.strides[:-1]:
        aligned &= stride % LINE_BYTES == 0
    return aligned and matrix.itemsize * matrix.size >= STREAMED


@njit(nogil=True)
def float_sums(matrix, grid, block, starts, places, values, modulus, each, sums, first, last):
    """Compute as `xor_sums` the sums of multiples by `values` of blocks of integer-valued floats.

    With a modulus every sum is reduced to the residue of least magnitude; with `each` every multiple is, too.
    """
    height, width = block
    table = np.empty(grid[0] * grid[1], np.int64)
    streaming = past_caches(sums, width)
    for i in range(first, last):
        for r in range(len(starts) - 1):
            if each:
                sums[r, i, :width] = 0
                for position in range(starts[r], starts[r + 1]):
                    row, column = places[position] // grid[1] * height + i, places[position] % grid[1] * width
                    add_multiple(matrix[row, column : column + width], values[position], modulus, sums[r, i])
                reduce_row(sums[r, i], modulus, 1.0 / modulus)
                continue
            terms = starts[r + 1] - starts[r]
            for t in range(terms):
                row = places[starts[r] + t] // grid[1] * height + i
                column = places[starts[r] + t] % grid[1] * width
                table[t] = matrix.ctypes.data + row * matrix.strides[0] + matrix.itemsize * column
            target = sums.ctypes.data + r * sums.strides[0] + i * sums.strides[1]
            float_rows(table, values, starts[r], terms, modulus, target, width, streaming)
    settle()


@njit(nogil=True)
def float_merge(slabs, grid, block, starts, places, values, modulus, each, matrix, first, last):
    """Compute as `xor_merge` the sums of multiples by `values` of slabs of integer-valued floats; see `float_sums`."""
    rows, cols = matrix.shape
    height, width = block
    table = np.empty(len(slabs), np.int64)
    aligned = past_caches(matrix, width)
    for i in range(first, last):
        for q in range(len(starts) - 1):
            row, column = q // grid[1] * height + i, q % grid[1] * width
            if row >= rows or column >= cols:
                continue
            length = min(width, cols - column)
            if each:
                target = matrix[row, column : column + length]
                target[:] = 0
                for position in range(starts[q], starts[q + 1]):
                    add_multiple(slabs[places[position], i, :length], values[position], modulus, target)
                reduce_row(target, modulus, 1.0 / modulus)
                continue
            terms = starts[q + 1] - starts[q]
            for t in range(terms):
                table[t] = slabs.ctypes.data + places[starts[q] + t] * slabs.strides[0] + i * slabs.strides[1]
            place = matrix.ctypes.data + row * matrix.strides[0] + matrix.itemsize * column
            streaming = aligned and matrix.itemsize * length % LINE_BYTES == 0
            float_rows(table, values, starts[q], terms, modulus, place, length, streaming)
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

"""Linear combinations of blocks: every block row is read from memory once, whatever the number of sums."""

from __future__ import annotations

import numpy as np

from ...jit import njit
from .xor import settle, xor_rows

STREAMED = 1 << 24
"""Bytes of sums from which on they are written past the caches: they would be evicted before they are read."""


@njit(nogil=True)
def xor_sums(matrix, grid, block, starts, places, sums, first, last):
    """Rows first <= i < last of sums (R, rows, words): slab r is the sum of the blocks places[starts[r]:starts[r+1]].

    `matrix` (rows, words) is cut into grid[0] x grid[1] blocks of block[0] rows and block[1] words; what reaches over
    its edge counts as zero.
    """
    rows, words = matrix.shape
    height, width = block
    table = np.empty(grid[0] * grid[1], np.int64)
    streaming = aligned_rows(sums)
    for i in range(first, last):
        for r in range(len(starts) - 1):
            inside = True
            for position in range(starts[r], starts[r + 1]):
                row = places[position] // grid[1] * height + i
                column = places[position] % grid[1] * width
                inside &= row < rows and column + width <= words
                table[position - starts[r]] = matrix.ctypes.data + row * matrix.strides[0] + 8 * column
            if inside:
                target = sums.ctypes.data + r * sums.strides[0] + i * sums.strides[1]
                xor_rows(table, starts[r + 1] - starts[r], target, width, streaming)
            else:
                sum_at_edge(matrix, grid, block, places[starts[r] : starts[r + 1]], i, sums[r, i])
    settle()


@njit(nogil=True)
def sum_at_edge(matrix, grid, block, places, i, target):
    """Row i of the sum of some blocks that may reach over the edge of the matrix."""
    rows, words = matrix.shape
    target[:] = np.uint64(0)
    for place in places:
        row, column = place // grid[1] * block[0] + i, place % grid[1] * block[1]
        if row < rows:
            for w in range(min(block[1], words - column)):
                target[w] ^= matrix[row, column + w]


@njit(nogil=True)
def xor_merge(slabs, grid, block, starts, places, matrix, first, last):
    """Block rows first <= i < last of matrix: block q is the sum of the slabs places[starts[q]:starts[q+1]]."""
    rows, words = matrix.shape
    height, width = block
    table = np.empty(len(slabs), np.int64)
    for i in range(first, last):
        for q in range(len(starts) - 1):
            row, column = q // grid[1] * height + i, q % grid[1] * width
            if row >= rows or column >= words:
                continue
            for position in range(starts[q], starts[q + 1]):
                source = slabs.ctypes.data + places[position] * slabs.strides[0] + i * slabs.strides[1]
                table[position - starts[q]] = source
            target = matrix.ctypes.data + row * matrix.strides[0] + 8 * column
            xor_rows(table, starts[q + 1] - starts[q], target, min(width, words - column), 0)


@njit(nogil=True)
def aligned_rows(sums):
    """1 where sums are large, and every row of them may be written past the caches."""
    aligned = sums.ctypes.data % 64 == 0 and sums.shape[2] % 8 == 0
    return 1 if aligned and 8 * sums.size >= STREAMED else 0


@njit(nogil=True)
def float_sums(matrix, grid, block, starts, places, values, modulus, each, sums, first, last):
    """As `xor_sums`, of multiples by `values` of blocks of floats that are integers.

    With a modulus every sum is reduced to the residue of least magnitude; with `each` every multiple is, too.
    """
    rows, cols = matrix.shape
    height, width = block
    inverse = 1.0 / modulus if modulus else 0.0
    for i in range(first, last):
        for r in range(len(starts) - 1):
            target = sums[r, i]
            target[:] = 0
            for position in range(starts[r], starts[r + 1]):
                row = places[position] // grid[1] * height + i
                column = places[position] % grid[1] * width
                if row < rows and column < cols:
                    add_multiple(
                        matrix[row, column : min(column + width, cols)], values[position], modulus, each, target
                    )
            if modulus:
                reduce_row(target, modulus, inverse)


@njit(nogil=True)
def float_merge(slabs, grid, block, starts, places, values, modulus, each, matrix, first, last):
    """As `xor_merge`, of multiples by `values` of slabs of floats that are integers; reduced as in `float_sums`."""
    rows, cols = matrix.shape
    height, width = block
    inverse = 1.0 / modulus if modulus else 0.0
    for i in range(first, last):
        for q in range(len(starts) - 1):
            row, column = q // grid[1] * height + i, q % grid[1] * width
            if row >= rows or column >= cols:
                continue
            target = matrix[row, column : min(column + width, cols)]
            target[:] = 0
            for position in range(starts[q], starts[q + 1]):
                add_multiple(slabs[places[position], i, : len(target)], values[position], modulus, each, target)
            if modulus:
                reduce_row(target, modulus, inverse)


@njit(nogil=True)
def add_multiple(source, value, modulus, each, target):
    """target += value * source; reduced before it is added where `each` asks for it."""
    if each:
        inverse = 1.0 / modulus
        for j in range(len(target)):
            product = value * source[j]
            target[j] += product - modulus * np.rint(product * inverse)
    else:
        for j in range(len(source)):
            target[j] += value * source[j]


@njit(nogil=True)
def reduce_row(row, modulus, inverse):
    """Replace integers by residues of magnitude at most modulus / 2 + 2.

    With |x| + modulus at most 2^53 (2^24 in float32) modulus * q and the difference are integers in that range, so
    exact, and x / modulus is wrong by at most 2 / modulus.
    """
    for j in range(len(row)):
        row[j] -= modulus * np.rint(row[j] * inverse)


@njit(nogil=True)
def add_reduced(product, modulus, out, first, last):
    """out += product, and reduced, in rows first <= i < last."""
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

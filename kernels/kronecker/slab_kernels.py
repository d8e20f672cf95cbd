"""Compiled loops over one slab of the batch: a transposed copy, and the product by small blocks.

Imports numba: only what runs them imports this.
"""

from __future__ import annotations

from ...jit import njit

TILE = 16


@njit(nogil=True)
def transpose_into(source, target):
    """target (n, m) = source (m, n) transposed, tile by tile."""
    rows, cols = source.shape
    for i0 in range(0, rows, TILE):
        i1 = min(i0 + TILE, rows)
        for j0 in range(0, cols, TILE):
            for j in range(j0, min(j0 + TILE, cols)):
                for i in range(i0, i1):
                    target[j, i] = source[i, j]


@njit(nogil=True, fastmath={"contract"})
def multiply_blocks(weights, x, out):
    """out (a, b, d, n) = weights (a, d, b, c) times x (a, c, d, n), block by block; each entry sums over c in order."""
    a, d, b, c = weights.shape
    n = x.shape[3]
    for i in range(a):
        for j in range(d):
            for p in range(b):
                row = out[i, p, j]
                first = weights[i, j, p, 0]
                source = x[i, 0, j]
                for s in range(n):
                    row[s] = first * source[s]
                for q in range(1, c):
                    weight = weights[i, j, p, q]
                    source = x[i, q, j]
                    for s in range(n):
                        row[s] += weight * source[s]

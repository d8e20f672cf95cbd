"""Compiled transposition of one slab of the batch.

Imports numba: imported only to run it.
"""

from __future__ import annotations

from ...jit import njit

TILE = 16


@njit(nogil=True)
def transpose_into(source, target):
    """Write the transpose of source (m, n) to target (n, m), tile by tile."""
    rows, cols = source.shape
    for i0 in range(0, rows, TILE):
        i1 = min(i0 + TILE, rows)
        for j0 in range(0, cols, TILE):
            for j in range(j0, min(j0 + TILE, cols)):
                for i in range(i0, i1):
                    target[j, i] = source[i, j]

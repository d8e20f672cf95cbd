"""Compiled copies of one slab of the batch, within its rows.

Imports numba: imported only to run it.
"""

from __future__ import annotations

from ...jit import njit
from .blocks import NARROW

RUN, TILE = 64, 16
"""Features of a block that are copied at a time, if d is narrow and if not: the piece of the row stays in L1 cache."""


def narrow_of(d: int) -> tuple[int, ...]:
    """Return a tuple of length d if d is narrow, else an empty one."""
    return (0,) * d if d <= NARROW else ()


@njit(nogil=True)
def gather_blocks(source, target, a, d, narrow):
    """Write the features (a, c, d) of every row of source (n, a c d) to target (n, a d c) in the order (a, d, c).

    `narrow` is `narrow_of(d)`: a kernel is compiled for every length of it.
    """
    n, features = source.shape
    d = len(narrow) if len(narrow) else d
    c = features // (a * d)
    run = RUN if len(narrow) else TILE
    for s in range(n):
        for i in range(a):
            for k0 in range(0, c, run):
                count = min(run, c - k0)
                piece = source[s, (i * c + k0) * d : (i * c + k0 + count) * d]
                for j in range(d):
                    first = (i * d + j) * c + k0
                    part = target[s, first : first + count]
                    for k in range(count):
                        part[k] = piece[k * d + j]


@njit(nogil=True)
def scatter_blocks(source, target, a, d, narrow):
    """Write the features (a, d, c) of every row of source (n, a d c) to target (n, a c d) in the order (a, c, d).

    `narrow` is `narrow_of(d)`: a kernel is compiled for every length of it.
    """
    n, features = source.shape
    if not len(narrow):
        gather_blocks(source, target, a, features // (a * d), narrow)
        return
    d = len(narrow)
    c = features // (a * d)
    for s in range(n):
        for i in range(a):
            rows = source[s, i * d * c : (i + 1) * d * c]
            block = target[s, i * c * d : (i + 1) * c * d]
            for k in range(c):
                for j in range(d):
                    block[k * d + j] = rows[j * c + k]

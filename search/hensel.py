"""The arithmetic of a lift, compiled: the Jacobian modulo 2 and the Hensel steps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .bits import compiled
from .linear2 import combined, set_bit
from .packed import Words

IntArray = npt.NDArray[np.int64]

LIFTED, SOLVED, STUCK = 0, 1, 2
"""Lifted through all steps; solved over the integers on the way; no solution at a step."""

_SAFE = 1 << 15


@compiled(nogil=True)
def jacobian(x: IntArray, sizes: IntArray, unknowns: IntArray, rows: Words) -> None:
    """Set the bits of the Jacobian of the Brent equations modulo 2, one column an unknown.

    `x` is (R, a + b + c): the coefficients of the present blocks of U, V and W side by side; `sizes`
    is (a, b, c); `unknowns` are flat indices into x; equation (i, j, l) is row (i b + j) c + l.
    """
    a, b, c = sizes
    width = a + b + c
    for column in range(len(unknowns)):
        r, e = divmod(unknowns[column], width)
        if e < a:
            for j in range(b):
                for l in range(c):
                    if x[r, a + j] & x[r, a + b + l] & 1:
                        set_bit(rows[(e * b + j) * c + l], column)
        elif e < a + b:
            for i in range(a):
                for l in range(c):
                    if x[r, i] & x[r, a + b + l] & 1:
                        set_bit(rows[(i * b + e - a) * c + l], column)
        else:
            for i in range(a):
                for j in range(b):
                    if x[r, i] & x[r, a + j] & 1:
                        set_bit(rows[(i * b + j) * c + e - a - b], column)


@compiled
def residual(x: IntArray, sizes: IntArray, tensor: IntArray, out: IntArray) -> bool:
    """out = tensor - sum of the products of x, modulo 2^64; returns whether any of it is not zero."""
    a, b, c = sizes
    for e in range(len(out)):
        out[e] = tensor[e]
    for r in range(x.shape[0]):
        for i in range(a):
            if x[r, i] == 0:
                continue
            for j in range(b):
                scale = x[r, i] * x[r, a + j]
                if scale != 0:
                    base = (i * b + j) * c
                    for l in range(c):
                        out[base + l] -= scale * x[r, a + b + l]
    nonzero = 0
    for e in range(len(out)):
        nonzero |= out[e]
    return nonzero != 0


@compiled(nogil=True)
def lift_steps(
    x: IntArray,
    sizes: IntArray,
    tensor: IntArray,
    unknowns: IntArray,
    rows: Words,
    rank: int,
    pivots: IntArray,
    offset: int,
    depth: int,
    out: IntArray,
    right: Words,
) -> tuple[int, int]:
    """Raise x, which solves the equations modulo 2, to a solution modulo 2^depth, in symmetric residues.

    `rows` and `pivots` are the eliminated Jacobian with its carried identity at word `offset`; each
    step is one application of it. Free unknowns keep the value that x gives them. `out` and `right`
    are scratch. Returns the outcome and the power of 2 that x solves the equations modulo.
    """
    for s in range(1, depth):
        if not residual(x, sizes, tensor, out):
            small = True
            for value in x.flat:
                if not -_SAFE < value < _SAFE:
                    small = False
            if small:
                return SOLVED, s
        right[:] = np.uint64(0)
        for e in range(len(out)):
            if (out[e] >> s) & 1:
                set_bit(right, e)
        for r in range(rank, rows.shape[0]):
            if combined(rows[r], offset, right):
                return STUCK, s
        half = np.int64(1) << s
        for p in range(rank):
            if combined(rows[p], offset, right):
                e = unknowns[pivots[p]]
                value = x.flat[e] + half
                x.flat[e] = value - 2 * half if value > half else value
    return LIFTED, depth

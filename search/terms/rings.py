"""What the moves need of a ring, compiled: factors as two words, their sums and signs.

A factor is a pair of words, its blocks with coefficient 1 and those with -1; over GF(2) the second
is zero and costs nothing. A term over another ring is a sign and three canonical factors, whose
lowest coefficient is 1, so that equal up to sign means equal, and zero means that the first word is
zero. A sign is a word too: no bits for plus, all bits for minus.
"""

from __future__ import annotations

import numpy as np

from .bits import ONE, compiled

GF2, TERNARY, GF3 = 1, 2, 3
"""Lengths of a `Ring`: GF(2), the integers as long as coefficients stay in {-1, 0, 1}, GF(3)."""

Ring = tuple[int, ...]
"""Zeros; the length says the ring and is known to the compiler, so that no branch on it is left."""

Value = tuple[np.uint64, np.uint64]

ZERO = np.uint64(0)


@compiled(forceinline=True)
def turned(ring: Ring, value: Value, sign: np.uint64) -> Value:
    """The factor times a sign."""
    if len(ring) == GF2:
        return value
    change = (value[0] ^ value[1]) & sign
    return value[0] ^ change, value[1] ^ change


@compiled(forceinline=True)
def added(ring: Ring, value: Value, other: Value) -> tuple[np.uint64, np.uint64, np.uint64]:
    """The sum of two factors, and the blocks where it leaves the ring."""
    (up, down), (more, less) = value, other
    if len(ring) == GF2:
        return up ^ more, ZERO, ZERO
    if len(ring) == GF3:
        return ((up ^ more) & ~(down | less)) | (down & less), ((down ^ less) & ~(up | more)) | (up & more), ZERO
    return (up | more) & ~(down | less), (down | less) & ~(up | more), (up & more) | (down & less)


@compiled(forceinline=True)
def sign_of(ring: Ring, value: Value) -> np.uint64:
    """Minus where the lowest coefficient is -1."""
    if len(ring) == GF2:
        return ZERO
    support = value[0] | value[1]
    return ZERO - np.uint64(value[1] & support & (ZERO - support) != ZERO)


@compiled(forceinline=True)
def sign_from(ring: Ring, bit: np.uint64) -> np.uint64:
    """Minus where the lowest bit is set; over GF(2) all signs are plus."""
    return ZERO if len(ring) == GF2 else ZERO - (bit & ONE)


@compiled(forceinline=True)
def opposite(ring: Ring, sign: np.uint64) -> np.uint64:
    """The other sign."""
    return ZERO if len(ring) == GF2 else ~sign

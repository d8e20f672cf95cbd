"""Ring operations of the moves, compiled: factors as two words, their sums and signs.

A factor is a pair of words, its blocks with coefficient 1 and those with -1; over GF(2) the second
is zero and compiled away. A term over another ring is a sign and three canonical factors, whose
lowest coefficient is 1: factors equal up to sign are equal words, and a factor is zero if its first
word is. A sign is a word too: no bits for plus, all bits for minus.
"""

from __future__ import annotations

import numpy as np

from .bits import ONE, compiled

GF2, TERNARY, GF3 = 1, 2, 3
"""Lengths of a `Ring`: GF(2), the integers with coefficients restricted to {-1, 0, 1}, GF(3)."""

Ring = tuple[int, ...]
"""Zeros; the length encodes the ring and is a compile-time constant, so that branches on it are eliminated."""

Value = tuple[np.uint64, np.uint64]

ZERO = np.uint64(0)


@compiled(forceinline=True)
def turned(ring: Ring, value: Value, sign: np.uint64) -> Value:
    """Return the factor times a sign."""
    if len(ring) == GF2:
        return value
    change = (value[0] ^ value[1]) & sign
    return value[0] ^ change, value[1] ^ change


@compiled(forceinline=True)
def equal(ring: Ring, value: Value, other: Value) -> bool:
    """Return whether two factors are equal."""
    return value[0] == other[0] if len(ring) == GF2 else (value[0] ^ other[0]) | (value[1] ^ other[1]) == ZERO


@compiled(forceinline=True)
def added(ring: Ring, value: Value, other: Value) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Return the sum of two factors, and the mask of blocks where it overflows {-1, 0, 1}."""
    (up, down), (more, less) = value, other
    if len(ring) == GF2:
        return up ^ more, ZERO, ZERO
    if len(ring) == GF3:
        return ((up ^ more) & ~(down | less)) | (down & less), ((down ^ less) & ~(up | more)) | (up & more), ZERO
    return (up | more) & ~(down | less), (down | less) & ~(up | more), (up & more) | (down & less)


@compiled(forceinline=True)
def sign_of(ring: Ring, value: Value) -> np.uint64:
    """Return minus if the lowest coefficient is -1, else plus."""
    if len(ring) == GF2:
        return ZERO
    support = value[0] | value[1]
    return ZERO - np.uint64(value[1] & support & (ZERO - support) != ZERO)


@compiled(forceinline=True)
def sign_from(ring: Ring, bit: np.uint64) -> np.uint64:
    """Return minus if the lowest bit is set, else plus; always plus over GF(2)."""
    return ZERO if len(ring) == GF2 else ZERO - (bit & ONE)


@compiled(forceinline=True)
def opposite(ring: Ring, sign: np.uint64) -> np.uint64:
    """Return the other sign; always plus over GF(2)."""
    return ZERO if len(ring) == GF2 else ~sign

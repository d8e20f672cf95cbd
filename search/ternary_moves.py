"""Sums of ternary words, pos | neg << 32, compiled: for up to 32 places."""

from __future__ import annotations

import numpy as np

from .bits import compiled
from .rings import ZERO

_FIVE, _LOW6 = np.uint64(5), np.uint64(63)
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@compiled(forceinline=True)
def turned(value: np.uint64, turn: np.uint64) -> np.uint64:
    """The word, or its negative where `turn` is 32 and not 0."""
    return (value << turn) | (value >> ((ZERO - turn) & _LOW6))


@compiled(forceinline=True)
def total_of(left: np.uint64, right: np.uint64) -> np.uint64:
    """The sum of two words, which must not clash: `left & right` is empty."""
    either = left | right
    return either & ~((either << _HALF) | (either >> _HALF))


@compiled(forceinline=True)
def turn_of(value: np.uint64) -> np.uint64:
    """32 where the lowest coefficient is -1, else 0."""
    minus = value >> _HALF
    support = (value | minus) & _LOW
    return np.uint64(minus & support & (ZERO - support) != ZERO) << _FIVE

"""Ternary terms with every factor in one word, pos | neg << 32, for at most 32 blocks a factor; and their sums."""

from __future__ import annotations

import numpy as np

from ...errors import PlanError
from ...schemes_db import Target
from .bits import compiled
from .rings import ZERO
from .ternary import TernaryTerms
from .words import HALF_BITS, Words

_HALF, _LOW = np.uint64(HALF_BITS), np.uint64((1 << HALF_BITS) - 1)
_FIVE, _LOW6 = np.uint64(5), np.uint64(63)


def packed(terms: TernaryTerms) -> Words:
    """Return (3, R) uint64: bit b of a word is set where block b has coefficient 1, bit 32 + b where it has -1.

    Raises:
        PlanError: a factor has more than 32 blocks.
    """
    largest = max(kinds.size for kinds in terms.target.kind_arrays)
    if largest > HALF_BITS:
        raise PlanError(f"{terms.target} has a factor of {largest} blocks; flips for additions take {HALF_BITS}")
    return np.ascontiguousarray(terms.words[:3] | (terms.words[3:] << _HALF))


def unpacked(target: Target, words: Words) -> TernaryTerms:
    """Invert `packed`."""
    return TernaryTerms(target, np.concatenate([words & _LOW, words >> _HALF]))


@compiled(forceinline=True)
def turned(value: np.uint64, turn: np.uint64) -> np.uint64:
    """Return the word if `turn` is 0, its negative if `turn` is 32."""
    return (value << turn) | (value >> ((ZERO - turn) & _LOW6))


@compiled(forceinline=True)
def total_of(left: np.uint64, right: np.uint64) -> np.uint64:
    """Return the sum of two words, which must not overflow: `left & right` is empty."""
    either = left | right
    return either & ~((either << _HALF) | (either >> _HALF))


@compiled(forceinline=True)
def turn_of(value: np.uint64) -> np.uint64:
    """Return 32 if the lowest coefficient is -1, else 0."""
    minus = value >> _HALF
    support = (value | minus) & _LOW
    return np.uint64(minus & support & (ZERO - support) != ZERO) << _FIVE


@compiled(forceinline=True)
def canonical_word(word: np.uint64) -> np.uint64:
    """Return the word or its negative, whichever has a positive lowest coefficient."""
    return turned(word, turn_of(word))


@compiled(forceinline=True)
def support_of(word: np.uint64) -> np.uint64:
    """Return the mask of the nonzero coefficients, which are the word modulo 2."""
    return (word | (word >> _HALF)) & _LOW

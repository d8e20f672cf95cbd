"""Ternary terms with every factor in one word, pos | neg << 32, for targets with at most 32 blocks a factor."""

from __future__ import annotations

import numpy as np

from ..errors import PlanError
from ..schemes_db import Target
from .packed import Words
from .ternary import TernaryTerms

HALF_BITS = 32
"""Blocks that a factor may have."""

_HALF, _LOW = np.uint64(HALF_BITS), np.uint64((1 << HALF_BITS) - 1)


def packed(terms: TernaryTerms) -> Words:
    """(3, R) uint64: bit b of a word is set where block b has coefficient 1, bit 32 + b where it has -1.

    Raises:
        PlanError: a factor has more than 32 blocks.
    """
    largest = max(kinds.size for kinds in terms.target.kind_arrays)
    if largest > HALF_BITS:
        raise PlanError(f"{terms.target} has a factor of {largest} blocks; flips for additions take {HALF_BITS}")
    return np.ascontiguousarray(terms.words[:3] | (terms.words[3:] << _HALF))


def unpacked(target: Target, words: Words) -> TernaryTerms:
    """The inverse of `packed`."""
    return TernaryTerms(target, np.concatenate([words & _LOW, words >> _HALF]))

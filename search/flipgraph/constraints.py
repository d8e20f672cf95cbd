"""Constraints on flips: rejection of flips to more full products, or to factors with too many nonzeros.

A product is half if one of its factors uses only lower or only upper half blocks of its matrix: only one
triangle of its result is needed, or of its operand is nonzero. A biased walk accepts a flip that increases
the number of full products only with some probability, so it stays longer where they are few (Metropolis).
The guard is an array: masks of the lower half blocks of U, V and W, of the upper ones, then

    ONE_MORE, TWO_MORE: the probabilities, times 2^32, of a flip that adds one or two full products,
    NONZEROS: maximum number of nonzeros of a factor,
    FULL: full products now,
    BEST_FULL: full products of the best terms.
"""

from __future__ import annotations

import numpy as np

from ...errors import PlanError
from ..basis.shears import half_masks
from ..basis.sparsify_kernel import half_in
from ..terms.bits import compiled, popcount
from ..terms.packed import SchemeTerms
from ..terms.words import WORD_BITS, Words, is_wide
from .policy import Policy

ONE_MORE, TWO_MORE, NONZEROS, FULL, BEST_FULL = range(6, 11)

Three = tuple[np.uint64, np.uint64, np.uint64]

_SCALE = 1 << 32
_MIX, _HALF = np.uint64(0xBF58476D1CE4E5B9), np.uint64(32)


def make_guard(start: SchemeTerms, policy: Policy) -> Words:
    """Create the guard of a walk.

    Raises:
        PlanError: the start has a factor with more nonzeros than the policy allows, or with more blocks than have bits
            of their own.
    """
    if policy.guarded and is_wide(start.target):
        raise PlanError(f"a walk on {start.target} has no bounds, as its factors have more than {WORD_BITS} blocks")
    most = max((int(word).bit_count() for word in start.support.ravel()), default=0)
    if most > policy.nonzeros:
        raise PlanError(f"a factor of the start has {most} nonzeros: a walk with at most {policy.nonzeros} can't start")
    guard = np.zeros(11, dtype=np.uint64)
    guard[:6] = half_masks(start.target)
    chance = min(max(policy.chance, 0.0), 1.0)
    guard[ONE_MORE], guard[TWO_MORE] = round(chance * _SCALE), round(chance**2 * _SCALE)
    guard[NONZEROS] = policy.nonzeros
    return guard


@compiled(forceinline=True)
def change_of_full(guard: Words, f: np.uint64, g: np.uint64, e: np.uint64, b: Three, c: Three, a: np.uint64) -> int:
    """Return the change of the number of full products by a flip.

    The arguments are supports: `a` of the common factor f; `b` of factor g in both terms and of its new
    value in the first; `c` of factor e in both and of its new value in the second.
    """
    if half_in(guard, f, a):
        return 0
    old_b, other_b, new_b = half_in(guard, g, b[0]), half_in(guard, g, b[1]), half_in(guard, g, b[2])
    other_c, old_c, new_c = half_in(guard, e, c[0]), half_in(guard, e, c[1]), half_in(guard, e, c[2])
    before = int(not (old_b or other_c)) + int(not (other_b or old_c))
    after = int(not (new_b or other_c)) + int(not (other_b or new_c))
    return after - before


@compiled(forceinline=True)
def allowed(guard: Words, draw: np.uint64, change: int, left: np.uint64, right: np.uint64) -> bool:
    """Return whether a flip with these new supports is accepted; a hash of its draw is the random number."""
    if popcount(left) > guard[NONZEROS] or popcount(right) > guard[NONZEROS]:
        return False
    return change <= 0 or (draw * _MIX) >> _HALF < guard[ONE_MORE + change - 1]

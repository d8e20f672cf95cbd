"""Chainability of lists of patterns: products of chainable factors are characterised by the ranks of blocks.

Source: Le, Zheng, Riccietti, Gribonval, "Butterfly Factorization with Error Guarantees" (arXiv 2411.04506), section 4.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce

from .pattern import Pattern


def chain_rank(left: Pattern, right: Pattern) -> int | None:
    """Return r(left, right) = a1 c1 / a2 = b2 d2 / d1, the rank of the blocks of a product; None if not chainable.

    Two patterns are chainable if both quotients are the same integer, a1 divides a2 and d2 divides d1.
    """
    if right.a % left.a or left.d % right.d or left.a * left.c % right.a or right.b * right.d % left.d:
        return None
    rank = left.a * left.c // right.a
    return rank if rank == right.b * right.d // left.d else None


def product_pattern(left: Pattern, right: Pattern) -> Pattern:
    """Return the pattern (a1, b1 d1 / d2, a2 c2 / a1, d2) of a product of chainable factors."""
    return Pattern(left.a, left.b * left.d // right.d, right.a * right.c // left.a, right.d)


def chain_pattern(patterns: Sequence[Pattern]) -> Pattern:
    """Return the pattern of the whole product of a chainable list."""
    return reduce(product_pattern, patterns)


def chain_reason(patterns: Sequence[Pattern]) -> str | None:
    """Return the reason why a list is not chainable, with its first non-chainable neighbours, or None."""
    for left, right in itertools.pairwise(patterns):
        if chain_rank(left, right) is None:
            return f"{left}{right} is not chainable: a1 c1 / a2 and b2 d2 / d1 must be one integer, a1 | a2 and d2 | d1"
    return None


def redundant_pair(patterns: Sequence[Pattern]) -> tuple[Pattern, Pattern] | None:
    """Return the first neighbours of a chainable list whose product is no sparser than one factor, r >= min(b1, c2)."""
    for left, right in itertools.pairwise(patterns):
        rank = chain_rank(left, right)
        if rank is not None and rank >= min(left.b, right.c):
            return left, right
    return None

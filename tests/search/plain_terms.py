"""Plain twins of compiled code on packed terms: the exact check, and the search for a sparse basis."""

import numpy as np

from lcma.search.basis.shears import half_masks, symmetries
from lcma.search.terms.packed import PackedTerms, SchemeTerms
from lcma.search.terms.words import Words


def holds(terms: SchemeTerms) -> bool:
    """Return whether the terms sum to the target's tensor over their ring: every Brent equation."""
    total = np.einsum("ra,rb,rc->abc", *terms.dense(), optimize=True)
    total[tuple(terms.target.terms.T)] -= terms.target.term_values
    return not (total % terms.ring.characteristic if terms.ring.characteristic else total).any()


def sparsified_naive(terms: PackedTerms) -> PackedTerms:
    """Compute `sparsified` in plain numpy."""
    changes = symmetries(terms.target)
    words, cost = terms.words, full_and_nonzeros(terms.words, half_masks(terms.target))
    while changes:
        candidates = [change.apply_mod2(words, terms.target) for change in changes]
        costs = [full_and_nonzeros(candidate, half_masks(terms.target)) for candidate in candidates]
        best = min(range(len(costs)), key=costs.__getitem__)
        if costs[best] >= cost:
            break
        words, cost = candidates[best], costs[best]
    return PackedTerms(terms.target, np.ascontiguousarray(words))


def full_and_nonzeros(words: Words, masks: Words) -> tuple[int, int]:
    """Return (full products, nonzeros) of terms over GF(2)."""
    full = np.ones(words.shape[1], dtype=bool)
    for place, mask in enumerate(masks):
        full &= (words[place % 3] & ~mask) != 0
    return int(full.sum()), int(np.bitwise_count(words).sum())

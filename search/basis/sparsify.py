"""Reduction of the nonzeros of a scheme by a change of basis over GF(2), before a lift.

Sparse schemes are far likelier to have a ternary lift, and can lift where a dense one needs larger integers.
"""

from __future__ import annotations

import numpy as np

from ..terms.packed import PackedTerms, Words
from .shears import half_masks, shear_table, symmetries


def sparsified(terms: PackedTerms) -> PackedTerms:
    """Return the scheme in a basis that no single shear improves: fewest full products, then fewest nonzeros.

    The number of full products never increases. Deterministic.
    """
    from .sparsify_kernel import sparsify_kernel

    words = np.array(terms.words, order="C")
    sparsify_kernel(words, shear_table(terms.target), half_masks(terms.target))
    return PackedTerms(terms.target, words)


def sparsified_naive(terms: PackedTerms) -> PackedTerms:
    """Compute `sparsified` in plain numpy (reference)."""
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
    for f, mask in masks:
        full &= (words[int(f)] & ~mask) != 0
    return int(full.sum()), int(np.bitwise_count(words).sum())

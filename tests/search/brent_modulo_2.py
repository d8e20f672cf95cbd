"""The exact check of packed terms over GF(2)."""

from __future__ import annotations

import numpy as np

from lcma.search.terms.packed import PackedTerms, Words


def tensor_words(words: Words, left: int, right: int) -> Words:
    """Return the sum of the terms as a (left, right) array of packed third factors.

    `words` is (3, R) uint64; `left` and `right` are the numbers of blocks of the first two factors.
    """
    total = np.zeros((left, right), dtype=np.uint64)
    zero = np.uint64(0)
    for u, v, w in words.T:
        a = (u >> np.arange(left, dtype=np.uint64)) & np.uint64(1)
        b = (v >> np.arange(right, dtype=np.uint64)) & np.uint64(1)
        total ^= np.where((a[:, None] & b) != 0, w, zero)
    return total


def target_words(terms: PackedTerms) -> Words:
    """Return the target's tensor in the form of `tensor_words`."""
    m, k, n = terms.target.shape
    total = np.zeros((m * k, k * n), dtype=np.uint64)
    for a, b, c in terms.target.terms[terms.target.term_values % 2 == 1]:
        total[a, b] ^= np.uint64(1) << np.uint64(c)
    return total


def holds(terms: PackedTerms) -> bool:
    """Return whether the terms sum to the target's tensor modulo 2: every Brent equation, 64 at a time."""
    m, k, n = terms.target.shape
    return bool(np.array_equal(tensor_words(terms.words, m * k, k * n), target_words(terms)))

"""Fewer nonzeros by a change of basis over GF(2), before a lift.

A <- P A Q^-1, B <- Q B S^-1, C <- P C S^-1 maps schemes to schemes of the same rank. Sparse ones
are far likelier to have a ternary lift, and can lift where a dense one asks for larger integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..schemes_db import Kind
from .brent2 import holds
from .packed import PackedTerms, Words

_ONE = np.uint64(1)


@dataclass(frozen=True)
class Elementary:
    """Add one line of a factor to another, and the other way round in the factor that shares the index.

    `index` is "m", "k" or "n"; row or column `i` takes `j` in the first of its two factors.
    """

    index: str
    i: int
    j: int

    def apply(self, words: Words, shape: tuple[int, int, int]) -> Words:
        """The words (3, R) in the new basis."""
        m, k, n = shape
        u, v, w = words
        i, j = self.i, self.j
        if self.index == "m":
            return np.stack([_add_row(u, k, i, j), v, _add_row(w, n, j, i)])
        if self.index == "k":
            return np.stack([_add_col(u, m, k, i, j), _add_row(v, n, j, i), w])
        return np.stack([u, _add_col(v, k, n, i, j), _add_col(w, m, n, j, i)])


def _add_row(words: Words, cols: int, i: int, j: int) -> Words:
    """Row i takes row j, in packed matrices of so many columns."""
    line = np.uint64((1 << cols) - 1)
    return words ^ (((words >> np.uint64(j * cols)) & line) << np.uint64(i * cols))


def _add_col(words: Words, rows: int, cols: int, i: int, j: int) -> Words:
    """Column i takes column j."""
    line = np.uint64(sum(1 << (row * cols) for row in range(rows)))
    return words ^ (((words >> np.uint64(j)) & line) << np.uint64(i))


def symmetries(terms: PackedTerms) -> list[Elementary]:
    """The elementary changes of basis that map the target to itself, absent blocks included."""
    naive = PackedTerms.naive(terms.target)
    sizes = dict(zip("mkn", terms.target.shape, strict=True))
    found = []
    for index, size in sizes.items():
        for i in range(size):
            for j in range(size):
                change = Elementary(index, i, j)
                if i != j and holds(PackedTerms(terms.target, change.apply(naive.words, terms.target.shape))):
                    found.append(change)
    return found


def sparsified(terms: PackedTerms) -> PackedTerms:
    """The scheme in a basis where no elementary change leaves fewer nonzeros, or fewer full products.

    Full products come first, so halves are never lost. Deterministic.
    """
    changes = symmetries(terms)
    halves = list(_half_masks(terms))
    words, cost = terms.words, _cost(terms.words, halves)
    while changes:
        candidates = [change.apply(words, terms.target.shape) for change in changes]
        costs = [_cost(candidate, halves) for candidate in candidates]
        best = min(range(len(costs)), key=costs.__getitem__)
        if costs[best] >= cost:
            break
        words, cost = candidates[best], costs[best]
    return PackedTerms(terms.target, np.ascontiguousarray(words))


def _half_masks(terms: PackedTerms) -> Iterator[tuple[int, np.uint64]]:
    """(factor, mask): a product whose word of that factor lies in the mask is half."""
    for f, kinds in enumerate(terms.target.kind_arrays):
        for kind in (Kind.LOWER, Kind.UPPER):
            blocks = np.flatnonzero(kinds.ravel() == kind)
            if len(blocks):
                yield f, np.bitwise_or.reduce(_ONE << blocks.astype(np.uint64))


def _cost(words: Words, halves: list[tuple[int, np.uint64]]) -> tuple[int, int]:
    """(full products, nonzeros)."""
    full = np.ones(words.shape[1], dtype=bool)
    for f, mask in halves:
        full &= (words[f] & ~mask) != 0
    return int(full.sum()), int(np.bitwise_count(words).sum())

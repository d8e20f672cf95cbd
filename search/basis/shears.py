"""Elementary changes of basis that map a target to itself.

A change of basis A <- P A Q^-1, B <- Q B S^-1, C <- P C S^-1 is a product of shears: a multiple of
one line (row or column) of a factor is added to another line, and the inverse transpose acts on the
factor that shares the index. Coefficients on absent blocks are dropped, since these blocks are neither
read nor wanted, so block-triangular changes remain symmetries of a triangular target.

Sparse schemes are far likelier to have a ternary lift, and can lift where a dense one needs larger integers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, starmap

import numpy as np

from ...schemes_db import Kind, Target
from ...schemes_db.factor import IntArray
from ..terms.packed import PackedTerms
from ..terms.words import Words, is_wide

_RUNS = {"m": (0, 2, True, True), "k": (0, 1, False, True), "n": (1, 2, False, False)}
"""The two factors of every index, and whether the index is the row index of each."""


@dataclass(frozen=True)
class Shear:
    """Elementary change of basis of `index`: adds line j to line i in its first factor, line i to j in its second."""

    index: str
    i: int
    j: int

    def moves(self, target: Target) -> tuple[tuple[int, int, int, int], tuple[int, int, int, int]]:
        """Return (factor, from, mask, to) for both factors: ((w >> from) & mask) << to is added to each word w."""
        f, g, row_f, row_g = _RUNS[self.index]
        m, k, n = target.shape
        shapes = ((m, k), (k, n), (m, n))

        def line(factor: int, is_row: bool, source: int, goal: int) -> tuple[int, int, int, int]:
            rows, cols = shapes[factor]
            blocks = list(range(cols)) if is_row else [row * cols for row in range(rows)]
            step = cols if is_row else 1
            present = target.kind_arrays[factor].ravel() != Kind.ABSENT
            mask = sum(1 << block for block in blocks if present[block + goal * step])
            return factor, source * step, mask, goal * step

        return line(f, row_f, self.j, self.i), line(g, row_g, self.i, self.j)

    def keeps(self, target: Target) -> bool:
        """Return whether the shear maps the target's tensor to itself, over the integers."""
        (f, *forth), (g, *back) = self.moves(target)
        wanted = target.coefficients
        total: Counter[tuple[int, ...]] = Counter()
        for term, value in wanted.items():
            for x, a in _images(term[f], forth, 1):
                for y, b in _images(term[g], back, -1):
                    image = list(term)
                    image[f], image[g] = x, y
                    total[tuple(image)] += a * b * value
        return {term: value for term, value in total.items() if value} == wanted

    def apply_mod2(self, words: Words, target: Target) -> Words:
        """Return the words (3, R) of terms over GF(2) in the new basis."""
        moved = words.copy()
        for factor, source, mask, goal in self.moves(target):
            bits = (words[factor] >> np.uint64(source)) & np.uint64(mask)
            moved[factor] ^= bits << np.uint64(goal)
        return moved


def _images(block: int, move: list[int], sign: int) -> list[tuple[int, int]]:
    """Return the image of a single block under a shear, as (block, coefficient) pairs."""
    source, mask, goal = move
    images = [(block, 1)]
    if block >= source and (mask >> (block - source)) & 1:
        images.append((block - source + goal, sign))
    return images


@lru_cache(maxsize=64)
def symmetries(target: Target) -> tuple[Shear, ...]:
    """Return the shears that map the target to itself."""
    lines = (
        (index, *pair) for index, size in zip("mkn", target.shape, strict=True) for pair in permutations(range(size), 2)
    )
    return tuple(shear for shear in starmap(Shear, lines) if shear.keeps(target))


@lru_cache(maxsize=64)
def shear_table(target: Target) -> Words:
    """Return (N, 2, 4) uint64, read-only: the `Shear.moves` of all symmetries, for compiled code."""
    table = np.array([shear.moves(target) for shear in symmetries(target)], dtype=np.uint64).reshape(-1, 2, 4)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=64)
def half_masks(target: Target) -> Words:
    """Return (6,), read-only: masks of the lower half blocks of A, B and C, then of the upper ones."""
    masks = np.zeros((2, 3), dtype=np.uint64)
    for f, kinds in enumerate(target.kind_arrays):
        for row, kind in enumerate((Kind.LOWER, Kind.UPPER)):
            masks[row, f] = sum(1 << int(block) for block in np.flatnonzero(kinds.ravel() == kind))
    masks.setflags(write=False)
    return masks.ravel()


def sparsified(terms: PackedTerms) -> PackedTerms:
    """Return the scheme in a basis that no single shear improves: fewest full products, then fewest nonzeros.

    The number of full products never increases. Deterministic. Terms with factors of more than 64 blocks stay as they
    are.
    """
    if is_wide(terms.target):
        return terms
    from .sparsify_kernel import sparsify_kernel

    words = np.array(terms.words, order="C")
    sparsify_kernel(words, shear_table(terms.target), half_masks(terms.target))
    return PackedTerms(terms.target, words)


def first_independent(words: Iterable[int]) -> list[int]:
    """Return the indices of the first vectors over GF(2) that are independent, as many as the rank."""
    pivots: dict[int, int] = {}
    found = []
    for place, word in enumerate(words):
        while word and word.bit_length() in pivots:
            word ^= pivots[word.bit_length()]
        if word:
            pivots[word.bit_length()] = word
            found.append(place)
    return found


def inverse_modulo_2(matrix: IntArray) -> IntArray:
    """Return the inverse of an invertible matrix over GF(2), by elimination."""
    size = len(matrix)
    rows = np.concatenate([matrix & 1, np.eye(size, dtype=np.int64)], axis=1)
    for column in range(size):
        pivot = column + int(rows[column:, column].argmax())
        rows[[column, pivot]] = rows[[pivot, column]]
        others = (rows[:, column] == 1) & (np.arange(size) != column)
        rows[others] ^= rows[column]
    return rows[:, size:]

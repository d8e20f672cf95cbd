"""Invariants under changes of basis and permutations of roles: they distinguish inequivalent schemes."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass

import numpy as np

from .algebra import rotate, transpose
from .factor import Factor, IntArray
from .scheme import Scheme

PRIME = 2_147_483_647
"""Ranks of schemes of characteristic 0 are computed modulo this prime; unimodular changes of basis preserve them."""

PAIR_LIMIT = 256
"""Rank up to which pairs of products are compared (2 s) by default; beyond, single products only."""


@dataclass(frozen=True)
class Invariants:
    """Ranks of the factor matrices, of single products and of pairs, as counted multisets.

    `singles` counts (rank U, rank V, rank W) over products; `pairs` counts, over pairs of products,
    the ranks of their factor matrices side by side and one above the other. Two schemes that are
    the same but for change of basis and permutation of roles have equal invariants; the converse
    is not claimed.
    """

    singles: tuple[tuple[tuple[int, ...], int], ...]
    pairs: tuple[tuple[tuple[int, ...], int], ...]

    @property
    def digest(self) -> str:
        """A hash (hex) of both multisets."""
        return hashlib.sha256(repr((self.singles, self.pairs)).encode()).hexdigest()


def invariants(scheme: Scheme, *, pairs_limit: int = PAIR_LIMIT) -> Invariants:
    """The invariants of a scheme; the smallest of those of its six permutations of roles.

    Pairs are left out beyond rank `pairs_limit`: with 0 it takes 3 ms at rank 137 in place of 270.
    """
    prime = scheme.ring.characteristic or PRIME
    factors = [_matrices(factor, prime) for factor in (scheme.u, scheme.v, scheme.w)]
    singles = np.stack([_ranks(array, prime) for array in factors], axis=1)
    pairs = None
    if scheme.rank <= pairs_limit:
        i, j = np.triu_indices(scheme.rank, 1)
        columns = []
        for array in factors:
            wide = np.concatenate([array[i], array[j]], axis=2)
            tall = np.concatenate([array[i], array[j]], axis=1)
            columns += [_ranks(wide, prime), _ranks(tall, prime)]
        pairs = np.stack(columns, axis=1) if len(i) else None
    # W as a matrix is m x n where the trilinear form has n x m: its sides change places.
    views = []
    for order, flipped in _PERMUTATIONS:
        ones = _counted(singles[:, list(order)])
        twos = () if pairs is None else _counted(pairs[:, _pair_columns(order, flipped)])
        views.append((ones, twos))
    best = min(views)
    return Invariants(*best)


_PERMUTATIONS = tuple(
    (order, flipped)
    for flipped, orders in ((False, ((0, 1, 2), (1, 2, 0), (2, 0, 1))), (True, ((1, 0, 2), (0, 2, 1), (2, 1, 0))))
    for order in orders
)


def _pair_columns(order: tuple[int, ...], flipped: bool) -> list[int]:
    """The columns (side by side, above) of every role in an order; transposition swaps the two."""
    columns = []
    for role in order:
        beside, above = 2 * role, 2 * role + 1
        if (role == 2) != flipped:
            beside, above = above, beside
        columns += [beside, above]
    return columns


def _counted(rows: IntArray) -> tuple[tuple[tuple[int, ...], int], ...]:
    return tuple(sorted(Counter(map(tuple, rows.tolist())).items()))


def _matrices(factor: Factor, prime: int) -> IntArray:
    """The matrices of all products (R, rows, cols) modulo a prime; the denominator is a scale and left out."""
    dense = factor.dense
    if dense.ndim == 4:
        # Both images of i would do; the ranks are those over a field where -1 has a square root.
        raise ValueError("invariants are known for real coefficients only")
    return dense % prime


def _ranks(matrices: IntArray, prime: int) -> IntArray:
    """The rank modulo a prime of every matrix of a stack (N, rows, cols), all eliminated at once."""
    work = matrices.copy()
    count, rows, cols = work.shape
    rank = np.zeros(count, dtype=np.int64)
    every = np.arange(count)
    for column in range(cols):
        below = np.where(np.arange(rows)[None, :] >= rank[:, None], work[:, :, column], 0)
        pivot = np.argmax(below != 0, axis=1)
        found = below[every, pivot] != 0
        chosen = every[found]
        if not len(chosen):
            continue
        top, at = rank[chosen], pivot[chosen]
        work[chosen, top], work[chosen, at] = work[chosen, at].copy(), work[chosen, top].copy()
        inverses = np.array([pow(int(x), -1, prime) for x in work[chosen, top, column]], dtype=np.int64)
        lines = work[chosen, top] * inverses[:, None] % prime
        work[chosen, top] = lines
        times = work[chosen][:, :, column].copy()
        times[np.arange(len(chosen)), top] = 0
        work[chosen] = (work[chosen] - times[:, :, None] * lines[:, None, :] % prime) % prime
        rank[chosen] += 1
    return rank


def relation(first: Scheme, second: Scheme) -> str:
    """Return the relation of two schemes in words that claim no more than is proven.

    "identical" (same canonical form), "same but for roles" (a rotation or transposition makes them
    identical), "different" (invariants differ: no change of basis or roles makes one the other), or
    "not told apart".
    """
    if first.digest == second.digest:
        return "identical"
    if sorted(first.target.shape) != sorted(second.target.shape) or first.rank != second.rank:
        return "different"
    turned = first
    for _ in range(2):
        for _ in range(3):
            if turned.digest == second.digest:
                return "same but for roles"
            turned = rotate(turned)
        turned = transpose(turned)
    if first.ring.characteristic != second.ring.characteristic or first.gaussian or second.gaussian:
        return "not told apart"
    return "different" if invariants(first) != invariants(second) else "not told apart"

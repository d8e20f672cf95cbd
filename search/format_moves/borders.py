"""Bases in which a naive border meets a scheme over GF(2): the more factors they share, the more flips there are.

The border that one more block along m, k or n needs has products a_i b_j whose one factor runs through the
unit matrices of V, W or U. A scheme found by a walk has few of those and is next to deaf to its border. But
factors of rank one, p q^T, there are many: where the p are columns of a new basis and the q columns of
another, they are unit matrices.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db import Provenance, Scheme
from ...schemes_db.ring import Z2
from .meta_moves import AXES

IntArray = npt.NDArray[np.int64]

TRIES = 8
"""Beginnings of the search for the basis that meets most."""

MAX_SIDE = 32
"""Vectors of a basis are words of so many bits at most."""

_MET = {"m": 1, "k": 2, "n": 0}
"""The factor (U, V, W) that the products of a border along an axis share with those of the scheme."""


def align_basis_with_border(scheme: Scheme, axis: str, rng: np.random.Generator, detour: float = 0.0) -> Scheme:
    """The scheme in a basis where a naive border along an axis shares many of its factors.

    Without a `detour` as many as were found in some tries, which nearly all end in the same basis; with
    one, vectors are taken at random that meet up to so many factors less than others do.

    Raises:
        PlanError: it is not a full product over Z2 with sides up to 32, or there is no such axis.
    """
    if not scheme.target.is_general or scheme.ring != Z2 or max(scheme.target.shape) > MAX_SIDE:
        raise PlanError(
            f"a border meets full products over Z2 with sides up to {MAX_SIDE}, not {scheme.target} over {scheme.ring}"
        )
    shared = _shared(axis)
    factors = [factor.dense.reshape(-1, factor.rows, factor.cols) & 1 for factor in scheme.factors]
    left, right = _rank_one(factors[shared])
    shape = factors[shared].shape[1:]
    found = [_bases(left, right, shape, rng, 1.0 + detour) for _ in range(1 if detour else TRIES)]
    _, rows, cols = max(found, key=lambda one: one[0])
    # A <- P A Q^-1, B <- Q B R^-1, C <- P C R^-1 takes p q^T of U, V, W to P^T p (Q^-1 q)^T,
    # Q^T p (R^-1 q)^T and P^-1 p (R^T q)^T: of each the sides must map the bases to the unit vectors.
    bases = [np.eye(size, dtype=np.int64) for size in scheme.target.shape]
    first, second = {0: (0, 1), 1: (1, 2), 2: (0, 2)}[shared]
    bases[first] = rows if shared == 2 else _inverse(rows).T
    bases[second] = _inverse(cols).T if shared == 2 else cols
    p, q, r = bases
    u, v, w = factors
    p_, q_, r_ = (_inverse(basis) for basis in bases)
    origin = Provenance(kind="search", parents=(scheme.digest,), relation="change of basis")
    moved = ((p.T @ u @ q_.T) & 1, (q.T @ v @ r_.T) & 1, (p_ @ w @ r) & 1)
    return Scheme.from_arrays(scheme.target, *moved, scheme.ring, provenance=origin)


def products_at_border(scheme: Scheme, axis: str) -> int:
    """Products that share a factor with the naive border along an axis.

    Raises:
        PlanError: there is no such axis.
    """
    factor = scheme.factors[_shared(axis)]
    return int((np.bincount(factor.product, minlength=scheme.rank) == 1).sum())


def _shared(axis: str) -> int:
    if axis not in AXES:
        raise PlanError(f"axis {axis!r} is not known; choose m, k or n")
    return _MET[axis]


def _rank_one(matrices: IntArray) -> tuple[IntArray, IntArray]:
    """Of those of rank one, p q^T, all p and all q as words, bit i for entry i."""
    rows = matrices @ (1 << np.arange(matrices.shape[2]))
    largest = rows.max(axis=1)
    single = ((rows == 0) | (rows == largest[:, None])).all(axis=1) & (largest > 0)
    left = (rows[single] > 0) @ (1 << np.arange(matrices.shape[1]))
    return left.astype(np.int64), largest[single]


def _bases(
    left: IntArray, right: IntArray, shape: tuple[int, ...], rng: np.random.Generator, noise: float
) -> tuple[int, IntArray, IntArray]:
    """Bases of both sides, in columns, and the pairs within them: each side in turn the best for the other.

    For given q the p of most weight that are independent are a matroid's best basis, which the greedy choice finds.
    """
    kept = rng.permutation(right)[: shape[1]]
    before = -1
    while True:
        rows = _heaviest(left[np.isin(right, kept)], left, shape[0], rng, noise)
        kept = _heaviest(right[np.isin(left, rows)], right, shape[1], rng, noise)
        pairs = int((np.isin(left, rows) & np.isin(right, kept)).sum())
        if pairs <= before:
            return pairs, _columns(rows, shape[0]), _columns(kept, shape[1])
        before = pairs


def _heaviest(wanted: IntArray, others: IntArray, size: int, rng: np.random.Generator, noise: float) -> IntArray:
    """A basis of words, in increasing order: the wanted by how often they come, then the others, then any at random.

    Draws up to `noise` are added to how often a word comes: 1 breaks ties at random. The order is fixed, as
    a border is the same for all orders of a basis.
    """
    words, counts = np.unique(wanted, return_counts=True)
    order = np.argsort(-(counts + noise * rng.random(len(words))))
    units = 1 << np.arange(size)
    rest = np.concatenate([rng.permutation(others), rng.integers(1, 1 << size, 2 * size), units])
    basis: list[int] = []
    reduced: list[int] = []
    for word in np.concatenate([words[order], rest]).tolist():
        left = word
        for one in reduced:
            left = min(left, left ^ one)
        if left:
            reduced.append(left)
            basis.append(word)
        if len(basis) == size:
            break
    return np.array(sorted(basis), dtype=np.int64)


def _columns(words: IntArray, size: int) -> IntArray:
    columns: IntArray = (words[None, :] >> np.arange(size)[:, None]) & 1
    return columns


def _inverse(matrix: IntArray) -> IntArray:
    """Over GF(2), by elimination."""
    size = len(matrix)
    rows = np.concatenate([matrix & 1, np.eye(size, dtype=np.int64)], axis=1)
    for column in range(size):
        pivot = column + int(rows[column:, column].argmax())
        rows[[column, pivot]] = rows[[pivot, column]]
        others = (rows[:, column] == 1) & (np.arange(size) != column)
        rows[others] ^= rows[column]
    return rows[:, size:]

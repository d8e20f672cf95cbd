"""Changes of basis over GF(2) that give a scheme more factors in common with a naive border, hence more flips.

The border of one more block along m, k or n has products a_i b_j of which one factor ranges over the unit
matrices of V, W or U. A scheme found by a walk has few of those, so few flips with its border. But it has
many factors of rank one, p q^T: these become unit matrices if the p are columns of a new basis and the q
columns of another.
"""

from __future__ import annotations

import numpy as np

from ...errors import PlanError, unknown_name
from ...schemes_db import Z2, Provenance, Scheme
from ...schemes_db.constructions import AXES
from ...schemes_db.factor import IntArray
from ..basis.shears import first_independent, inverse_modulo_2
from .projections import common_word

TRIES = 8
"""Random starts of the search for the basis with the most shared factors."""

MAX_SIDE = 32
"""Maximum number of bits of the basis vectors, which are words."""

_MET = {"m": 1, "k": 2, "n": 0}
"""The factor (U, V, W) that the products of a border along an axis share with those of the scheme."""


def align_basis_with_border(scheme: Scheme, axis: str, rng: np.random.Generator, detour: float = 0.0) -> Scheme:
    """Return the scheme in a basis where it shares many factors with a naive border along an axis.

    Without `detour` the best of TRIES random starts is used; nearly all end in the same basis. With it,
    random basis vectors are preferred although they share up to `detour` factors fewer than others.

    Raises:
        PlanError: the scheme is not a full product over Z2 with sides up to 32, or the axis is unknown.
    """
    if not scheme.target.is_general or scheme.ring != Z2 or max(scheme.target.shape) > MAX_SIDE:
        raise PlanError(
            f"a border meets full products over Z2 with sides up to {MAX_SIDE}, not {scheme.target} over {scheme.ring}"
        )
    if axis not in tuple(AXES):
        raise unknown_name("axis", axis, "mkn")
    shared = _MET[axis]
    factors = [factor.dense & 1 for factor in scheme.factors]
    shape = factors[shared].shape[1:]
    # All p and all q of the matrices of rank one, p q^T, as words, bit i for entry i.
    right = common_word(factors[shared].swapaxes(1, 2))
    left = (factors[shared].any(axis=2) @ (1 << np.arange(shape[0])))[right > 0]
    right = right[right > 0]
    found = [_bases(left, right, shape, rng, 1.0 + detour) for _ in range(1 if detour else TRIES)]
    _, rows, cols = max(found, key=lambda one: one[0])
    # A <- P A Q^-1, B <- Q B R^-1, C <- P C R^-1 maps p q^T of U, V, W to P^T p (Q^-1 q)^T,
    # Q^T p (R^-1 q)^T and P^-1 p (R^T q)^T: both sides must map the bases to the unit vectors.
    bases = [np.eye(size, dtype=np.int64) for size in scheme.target.shape]
    first, second = {0: (0, 1), 1: (1, 2), 2: (0, 2)}[shared]
    bases[first] = rows if shared == 2 else inverse_modulo_2(rows).T
    bases[second] = inverse_modulo_2(cols).T if shared == 2 else cols
    p, q, r = bases
    u, v, w = factors
    p_, q_, r_ = (inverse_modulo_2(basis) for basis in bases)
    origin = Provenance(kind="search", parents=(scheme.digest,), relation="change of basis")
    moved = ((p.T @ u @ q_.T) & 1, (q.T @ v @ r_.T) & 1, (p_ @ w @ r) & 1)
    return Scheme.from_arrays(scheme.target, *moved, scheme.ring, provenance=origin)


def _bases(
    left: IntArray, right: IntArray, shape: tuple[int, ...], rng: np.random.Generator, noise: float
) -> tuple[int, IntArray, IntArray]:
    """Return the number of pairs (p, q) in bases of both sides, and the bases in columns, by alternating optimisation.

    For a given basis of q, the best basis of p is a maximum-weight basis of a matroid, found greedily.
    """
    kept = rng.permutation(right)[: shape[1]]
    before = -1
    while True:
        rows = _heaviest(left[np.isin(right, kept)], left, shape[0], rng, noise)
        kept = _heaviest(right[np.isin(left, rows)], right, shape[1], rng, noise)
        pairs = int((np.isin(left, rows) & np.isin(right, kept)).sum())
        if pairs <= before:
            return pairs, (rows >> np.arange(shape[0])[:, None]) & 1, (kept >> np.arange(shape[1])[:, None]) & 1
        before = pairs


def _heaviest(wanted: IntArray, others: IntArray, size: int, rng: np.random.Generator, noise: float) -> IntArray:
    """Select a basis of words greedily: `wanted` by frequency, then `others`, then random words; return it sorted.

    A random number up to `noise` is added to the frequency of a word: 1 breaks ties at random. The basis is
    sorted because the border is the same for all orders.
    """
    words, counts = np.unique(wanted, return_counts=True)
    order = np.argsort(-(counts + noise * rng.random(len(words))))
    units = 1 << np.arange(size)
    rest = np.concatenate([rng.permutation(others), rng.integers(1, 1 << size, 2 * size), units])
    every = np.concatenate([words[order], rest])
    return np.sort(every[first_independent(every.tolist())])

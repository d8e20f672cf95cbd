"""Projections over GF(2) in any direction: a full product with one block less along an axis, of minimal rank.

A direction is a functional `l`, set to zero, and a vector `v`, dropped from the result, with l(v) = 1. A product
vanishes if its factor along the axis depends on `l` only, or if its result there is a multiple of `v`. In the basis
of the scheme there are as many pairs as blocks; over GF(2) there are 2^(d-1) (2^d - 1) in all. Up to 8 blocks all pairs
are considered; on longer axes only functionals and vectors of the basis, and those that make some product vanish.
"""

from __future__ import annotations

import numpy as np

from ...errors import PlanError, unknown_name
from ...schemes_db import Z2, Provenance, Scheme, Target
from ...schemes_db.constructions import AXES
from ...schemes_db.factor import IntArray

ALL_PAIRS = 8
"""Maximum number of blocks along the axis for which all pairs of directions are considered: 32,640 of them."""

MAX_LENGTH = 62
"""Maximum number of blocks along the axis: a direction is one word."""

_SIDES = {"m": ((0, 0), (2, 0)), "k": ((1, 0), (0, 1)), "n": ((2, 1), (1, 1))}
"""For each axis the (factor, side: 0 for rows, 1 for columns) shortened by the functional, and by the vector."""


def projections(scheme: Scheme, axis: str, most: int, rng: np.random.Generator, slack: int = 0) -> list[Scheme]:
    """Return a projection of the lowest rank along an axis, and up to `most` - 1 others, at most `slack` above it.

    The others are drawn at random; all are in order of rank.

    Raises:
        PlanError: the axis is unknown, or the scheme is no full product over Z2 with 2 to 62 blocks along it.
    """
    if axis not in tuple(AXES):
        raise unknown_name("axis", axis, "mkn")
    length = scheme.target.shape[AXES.index(axis)]
    if not scheme.target.is_general or scheme.ring != Z2 or not 2 <= length <= MAX_LENGTH:
        raise PlanError(
            f"a projection in any direction needs a full product over Z2 with 2 to {MAX_LENGTH} blocks along {axis}, "
            f"not {scheme.target} over {scheme.ring}"
        )
    functionals, vectors, lost = directions(scheme, axis)
    drawn = rng.permutation(len(lost))
    best = drawn[lost[drawn].argmax()]
    others = drawn[(lost[drawn] >= lost[best] - slack) & (drawn != best)][: most - 1]
    chosen = [best, *others[np.argsort(-lost[others], kind="stable")]]
    return [_projected(scheme, axis, int(functionals[one]), int(vectors[one])) for one in chosen]


def directions(scheme: Scheme, axis: str) -> tuple[IntArray, IntArray, IntArray]:
    """Return functionals and vectors with l(v) = 1 as words (bit i: block i), and their numbers of lost products.

    All three are (pairs,). On axes longer than ALL_PAIRS each word is of the basis or loses a product.
    """
    length = scheme.target.shape[AXES.index(axis)]
    dense = [(scheme.factors[factor].dense & 1, side) for factor, side in _SIDES[axis]]
    dead = [common_word(part.swapaxes(1, 2) if side else part) for part, side in dense]
    basis = 1 << np.arange(length)
    words = [np.arange(1, 1 << length) if length <= ALL_PAIRS else np.union1d(basis, one[one > 0]) for one in dead]
    rows_of, columns_of = (np.searchsorted(some, one) for some, one in zip(words, dead, strict=True))
    by_functional = np.bincount(rows_of[dead[0] > 0], minlength=len(words[0]))
    by_vector = np.bincount(columns_of[dead[1] > 0], minlength=len(words[1]))
    lost = by_functional[:, None] + by_vector  # (functionals, vectors)
    by_both = (dead[0] > 0) & (dead[1] > 0)
    np.subtract.at(lost, (rows_of[by_both], columns_of[by_both]), 1)
    functionals, vectors = np.meshgrid(*words, indexing="ij")
    paired = np.bitwise_count(functionals & vectors) % 2 == 1
    return functionals[paired], vectors[paired], lost[paired]


def common_word(stack: IntArray) -> IntArray:
    """Return for each matrix the word that all its nonzero columns equal, 0 if they differ."""
    words = (stack << np.arange(stack.shape[1])[None, :, None]).sum(axis=1)
    largest = words.max(axis=1)
    alike = ((words == 0) | (words == largest[:, None])).all(axis=1)
    return np.where(alike, largest, 0)


def _projected(scheme: Scheme, axis: str, functional: int, vector: int) -> Scheme:
    """Return the scheme with A = E A' and C' = F C (for m; k and n likewise), where l E = 0, F v = 0 and F E = 1."""
    length = scheme.target.shape[AXES.index(axis)]
    bits = np.arange(length)
    l, v = (functional >> bits) & 1, (vector >> bits) & 1
    pivot = int(l.argmax())
    kept = np.delete(bits, pivot)
    embedding = np.eye(length, dtype=np.int64)[kept]  # (length - 1, length): E^T
    embedding[:, pivot] = l[kept]
    quotient = (np.eye(length, dtype=np.int64)[kept] + np.outer(v[kept], l)) & 1
    dense = [part.dense & 1 for part in scheme.factors]
    for (factor, side), matrix in zip(_SIDES[axis], (embedding, quotient), strict=True):
        dense[factor] = (dense[factor] @ matrix.T if side else matrix @ dense[factor]) & 1
    alive = np.logical_and.reduce([part.any(axis=(1, 2)) for part in dense])
    shape = [size - (name == axis) for name, size in zip(AXES, scheme.target.shape, strict=True)]
    origin = Provenance(kind="search", parents=(scheme.digest,), relation=f"projection along {axis}")
    u, w_, x = (part[alive] for part in dense)
    return Scheme.from_arrays(Target.general(*shape), u, w_, x, scheme.ring, provenance=origin)

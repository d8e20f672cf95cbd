"""The scheme of an arrangement."""

from __future__ import annotations

import numpy as np

from ...errors import PlanError
from ...schemes_db import Scheme, Target, Z
from ...schemes_db.ring import Z2
from .arrangement import Arrangement, IntArray, Triple, independent_rows
from .forms import seventh_product, two_products

TRIES = 100
"""Bases that are tried for a scheme with small coefficients: a tenth of a second to a second."""

_FIRST, _SECOND = 0, 1


def scheme_of(arrangement: Arrangement, tries: int = TRIES, seed: int = 0) -> Scheme | None:
    """Return the scheme of p x 2 x n, over Z or, for an arrangement modulo 2, over Z2; unchecked.

    Of `tries` schemes the one with the least sum of coefficients is returned. Each takes triples in a random order
    until all forms are spanned, in a basis of rows and one of columns drawn from the vectors r and c. Over Z a choice
    counts if the inverses of both bases and of the matrix of forms are integral; None if none is.

    Raises:
        PlanError: inner products and triples do not span all entries of C.
    """
    p, n = arrangement.shape
    spanned = len(independent_rows(arrangement.forms(arrangement.triples())))
    if spanned < p * n:
        raise PlanError(f"the inner products and their triples span {spanned} of {p * n} entries")
    rng, count = np.random.default_rng(seed), len(arrangement.ways)
    best = None
    for _ in range(tries):
        changed = _in_random_basis(arrangement, rng)
        if changed is None:
            continue
        triples = changed.triples()
        shuffled = [triples[i] for i in rng.permutation(len(triples)).tolist()]
        chosen = [shuffled[i - count] for i in independent_rows(changed.forms(shuffled)) if i >= count]
        made = _scheme(changed, chosen)
        if made is not None and (best is None or _weight(made) < _weight(best)):
            best = made
    return best


def _in_random_basis(arrangement: Arrangement, rng: np.random.Generator) -> Arrangement | None:
    """Return the arrangement in bases of rows and of columns that are vectors r and c; None if an inverse is
    fractional."""
    changed = []
    for vectors in (arrangement.rows, arrangement.cols):
        shuffled = vectors[rng.permutation(len(vectors))]
        inverse = _inverse(shuffled[independent_rows(shuffled)], arrangement.modulo_2)
        if inverse is None:
            return None
        changed.append(vectors @ inverse % 2 if arrangement.modulo_2 else vectors @ inverse)
    return Arrangement(changed[0], changed[1], arrangement.ways, arrangement.modulo_2)


def _scheme(arrangement: Arrangement, triples: list[Triple]) -> Scheme | None:
    """Return the scheme with these triples, None if the entries of C are no integral combinations of their forms."""
    p, n = arrangement.shape
    rows, cols, ways = arrangement.rows, arrangement.cols, arrangement.ways.tolist()
    count = len(ways)
    lefts, rights = [], []
    # combinations[f] are the coefficients of the products in form f.
    combinations = np.zeros((count + len(triples), 2 * count + len(triples)), dtype=np.int64)
    for i, way in enumerate(ways):
        for row_form, col_form in two_products(way):
            lefts.append(np.outer(rows[i], row_form))
            rights.append(np.outer(col_form, cols[i]))
        combinations[i, [2 * i, 2 * i + 1]] = 1
    for number, (first, second, third, s, u) in enumerate(triples):
        seventh = seventh_product(s, u)
        lefts.append(np.outer(rows[first], seventh.left1) + np.outer(rows[second], seventh.left2))
        rights.append(np.outer(seventh.right1, cols[first]) + np.outer(seventh.right2, cols[second]))
        row = combinations[count + number]
        row[2 * count + number] = seventh.own
        row[2 * first + _FIRST] = seventh.first
        row[2 * second + _FIRST] = seventh.second
        # The third is stored up to a sign of r and of c.
        turned = np.array_equal(rows[first] + s * rows[second], rows[third])
        turned ^= np.array_equal(cols[first] + u * cols[second], cols[third])
        row[2 * third + _SECOND] = seventh.third * (-1 if turned and not arrangement.modulo_2 else 1)
    forms = arrangement.forms(triples)
    chosen = independent_rows(forms)
    inverse = _inverse(forms[chosen], arrangement.modulo_2)
    if inverse is None:
        return None
    weights = (inverse @ combinations[chosen]).T
    used = weights.any(axis=1)
    left, right, out = (factor[used] for factor in (np.array(lefts), np.array(rights), weights.reshape(-1, p, n)))
    if arrangement.modulo_2:
        left, right, out = left % 2, right % 2, out % 2
    return Scheme.from_arrays(Target.general(p, 2, n), left, right, out, Z2 if arrangement.modulo_2 else Z)


def _inverse(square: IntArray, modulo_2: bool) -> IntArray | None:
    """Return the inverse of a matrix that is invertible modulo 2, integral or modulo 2; None if it is fractional."""
    if modulo_2:
        return _inverse_modulo_2(square)
    inverse = np.rint(np.linalg.inv(square.astype(np.float64))).astype(np.int64)
    return inverse if np.array_equal(inverse @ square, np.eye(len(square), dtype=np.int64)) else None


def _inverse_modulo_2(square: IntArray) -> IntArray:
    """Return the inverse of an invertible matrix modulo 2."""
    size = len(square)
    work = np.concatenate([square % 2, np.eye(size, dtype=np.int64)], axis=1)
    for column in range(size):
        pivot = column + int(np.argmax(work[column:, column]))
        work[[column, pivot]] = work[[pivot, column]]
        others = work[:, column].astype(bool)
        others[column] = False
        work[others] ^= work[column]
    return work[:, size:]


def _weight(scheme: Scheme) -> int:
    """Return the sum of the magnitudes of all coefficients."""
    return sum(int(np.abs(factor.values).sum()) for factor in scheme.factors)

"""Inner products of rows of A and columns of B, each with its variant, the triples among them, and their scheme.

An inner product is the sum of two products in three variants, and a triple takes the seventh product of Strassen's
scheme. With f1, f2, f3 = x, y, -(x + y) for the entries (x, y) of r A, variant 0 computes f1 and f2 times entries of
B c, and the other variants are its images under the rotation f1 -> f2 -> f3 -> f1, which the entries of B c follow so
that the inner product stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from ...errors import PlanError
from ...schemes_db import Scheme, Target, Z
from ...schemes_db.factor import IntArray
from ..basis.shears import first_independent, sparsified
from ..lifting.lift import lift
from ..terms.packed import PackedTerms
from ..terms.words import WORD_BITS

Form = tuple[int, int]
"""Coefficients of the two entries of r A, or of B c."""

Products = tuple[tuple[Form, Form], tuple[Form, Form]]

TWO_PRODUCTS: tuple[Products, ...] = (
    (((1, 0), (1, 0)), ((0, 1), (0, 1))),
    (((0, 1), (-1, 1)), ((-1, -1), (-1, 0))),
    (((-1, -1), (0, -1)), ((1, 0), (1, -1))),
)
"""For every variant the forms of r A and of B c of the two products whose sum is the inner product."""

BASES, CHOICES = 400, 20
"""Numbers of random bases and of random orders of triples, the best of which is used; half a second in all."""


class Triple(NamedTuple):
    """Inner products of variants 2, 1 and 0 with r_third = +-(r_first + s r_second) and c_third = +-(c_first + u
    c_second)."""

    first: int
    second: int
    third: int
    s: int
    u: int


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Inner products (r A)(B c) for A (p, 2) and B (2, n).

    Attributes:
        rows: (N, p) the vectors r, entries -1, 0 and 1.
        cols: (N, n) the vectors c.
        variants: (N,) the variant of the two products that compute each: 0, 1 or 2.
    """

    rows: IntArray
    cols: IntArray
    variants: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of A and columns of B."""
        return self.rows.shape[1], self.cols.shape[1]

    @property
    def rank(self) -> int:
        """Rank of its scheme, if it spans all entries of C."""
        p, n = self.shape
        return p * n + len(self.variants)

    def triples(self) -> list[Triple]:
        known = {
            (_up_to_sign(self.rows[i]), _up_to_sign(self.cols[i])): i
            for i in np.flatnonzero(self.variants == 0).tolist()
        }
        found = []
        for first, second in product(*(np.flatnonzero(self.variants == variant).tolist() for variant in (2, 1))):
            for s, u in product((1, -1), repeat=2):
                r, c = self.rows[first] + s * self.rows[second], self.cols[first] + u * self.cols[second]
                third = known.get((_up_to_sign(r), _up_to_sign(c)))
                if third is not None:
                    found.append(Triple(first, second, third, s, u))
        return found

    def forms(self, triples: Sequence[Triple]) -> IntArray:
        """Return (N + T, p n): coefficients r_i c_j of the inner products, then of (r_first A)(B c_second) of
        triples."""
        pairs = [(i, i) for i in range(len(self.variants))] + [(one.first, one.second) for one in triples]
        return np.array([np.outer(self.rows[i], self.cols[j]).ravel() for i, j in pairs])


def independent_rows(matrix: IntArray) -> list[int]:
    """Return the indices of the first rows that are independent modulo 2, as many as the rank."""
    return first_independent(int("".join(map(str, row)), 2) for row in (matrix % 2).tolist())


def _up_to_sign(vector: IntArray) -> tuple[int, ...]:
    """Return a vector with its first nonzero entry positive."""
    nonzero = np.flatnonzero(vector)
    return tuple((-vector if len(nonzero) and vector[nonzero[0]] < 0 else vector).tolist())


def seventh_product(s: int, u: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the product that completes a triple: the forms x and y (2, 2) of its factors, and four weights.

    Inner products 1, 2, 3 are of variants 2, 1, 0, with r3 = r1 + s r2 and c3 = c1 + u c2 for signs s and u. The
    product is (x1(r1 A) + x2(r2 A)) (y1(B c1) + y2(B c2)). The weights are those of it, the first product of 1, the
    first of 2 and the second of 3 in the sum (r1 A)(B c2).

    With s = -1 and u = 1 it is (a11 + a22)(b11 + b22) of Strassen's scheme, where r1 A and r2 A are the rows of A, B c2
    and B c1 the columns of B.
    """
    return np.array([[1, 0], [0, -s]]), np.array([[0, 1], [u, 0]]), np.array([u, -u, -s, u])


def scheme_of(arrangement: Arrangement, seed: int = 0) -> Scheme | None:
    """Return the scheme of p x 2 x n over Z, unchecked.

    Rows and columns are written in a sparse basis. Triples are added in a random order until all forms are spanned,
    and the inverse of the matrix of these forms must be integral; of CHOICES such orders the scheme with the
    least sum of coefficients is returned, None if none is integral.

    Raises:
        PlanError: inner products and triples do not span all entries of C.
    """
    p, n = arrangement.shape
    spanned = len(independent_rows(arrangement.forms(arrangement.triples())))
    if spanned < p * n:
        raise PlanError(f"the inner products and their triples span {spanned} of {p * n} entries")
    rng, count = np.random.default_rng(seed), len(arrangement.variants)
    rows, cols = (_in_sparse_basis(x, rng) for x in (arrangement.rows, arrangement.cols))
    sparse = Arrangement(rows, cols, arrangement.variants)
    triples, best = sparse.triples(), None
    for _ in range(CHOICES):
        shuffled = [triples[i] for i in rng.permutation(len(triples)).tolist()]
        chosen = [shuffled[i - count] for i in independent_rows(sparse.forms(shuffled)) if i >= count]
        made = _scheme(sparse, chosen)
        if made is not None and (best is None or _weight(made) < _weight(best)):
            best = made
        if len(chosen) == len(triples):
            break  # there is no choice
    return best


def with_smaller_coefficients(scheme: Scheme) -> Scheme:
    """Return the lift of a scheme over Z from its coefficients modulo 2 in a sparse basis, if it is sparser; certified.

    The nonzeros of a scheme 2x7x7:75 fell from 2008 to 1093, its largest coefficient from 44 to 2.
    """
    modulo_2 = scheme.over_z2()
    if modulo_2 is None or max(kinds.size for kinds in scheme.target.kind_arrays) > WORD_BITS:
        return scheme
    lifted = lift(sparsified(PackedTerms.from_scheme(modulo_2)).to_scheme(), ring=Z, tries=2, orders=1).scheme
    return scheme if lifted is None else min(scheme, lifted.replace(provenance=scheme.provenance), key=_weight)


def _in_sparse_basis(vectors: IntArray, rng: np.random.Generator) -> IntArray:
    """Return vectors in the basis of some of them, of BASES random ones, in which their entries have the least sum."""
    best = vectors
    for _ in range(BASES):
        shuffled = vectors[rng.permutation(len(vectors))]
        inverse = _inverse(shuffled[independent_rows(shuffled)])
        if inverse is not None:
            best = min(best, vectors @ inverse, key=lambda array: int(np.abs(array).sum()))
    return best


def _scheme(arrangement: Arrangement, triples: list[Triple]) -> Scheme | None:
    """Return the scheme with these triples, None if the entries of C are no integral combinations of their forms."""
    p, n = arrangement.shape
    rows, cols, variants = arrangement.rows, arrangement.cols, arrangement.variants.tolist()
    count = len(variants)
    lefts, rights = [], []
    # combinations[f] are the coefficients of the products in form f.
    combinations = np.zeros((count + len(triples), 2 * count + len(triples)), dtype=np.int64)
    for i, variant in enumerate(variants):
        for row_form, col_form in TWO_PRODUCTS[variant]:
            lefts.append(np.outer(rows[i], row_form))
            rights.append(np.outer(col_form, cols[i]))
        combinations[i, [2 * i, 2 * i + 1]] = 1
    for number, (first, second, third, s, u) in enumerate(triples):
        left, right, combination = seventh_product(s, u)
        lefts.append(rows[[first, second]].T @ left)
        rights.append(right.T @ cols[[first, second]])
        # The third is stored up to a sign of r and of c.
        turned = np.array_equal(rows[first] + s * rows[second], rows[third])
        turned ^= np.array_equal(cols[first] + u * cols[second], cols[third])
        combination[3] *= -1 if turned else 1
        combinations[count + number, [2 * count + number, 2 * first, 2 * second, 2 * third + 1]] = combination
    forms = arrangement.forms(triples)
    chosen = independent_rows(forms)
    inverse = _inverse(forms[chosen])
    if inverse is None:
        return None
    weights = (inverse @ combinations[chosen]).T
    used = weights.any(axis=1)
    left, right, out = (factor[used] for factor in (np.array(lefts), np.array(rights), weights.reshape(-1, p, n)))
    return Scheme.from_arrays(Target.general(p, 2, n), left, right, out)


def _inverse(square: IntArray) -> IntArray | None:
    """Return the inverse of a matrix that is invertible modulo 2; None if it is fractional."""
    inverse = np.rint(np.linalg.inv(square.astype(np.float64))).astype(np.int64)
    return inverse if np.array_equal(inverse @ square, np.eye(len(square), dtype=np.int64)) else None


def _weight(scheme: Scheme) -> int:
    """Return the sum of the magnitudes of all coefficients."""
    return sum(int(np.abs(factor.values).sum()) for factor in scheme.factors)

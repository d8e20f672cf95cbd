"""Inner products of rows of A and columns of B, each with its variant, and the triples among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from ...schemes_db.factor import IntArray
from ..basis.shears import first_independent


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

"""Terms over GF(2) with every factor packed into one 64-bit word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..schemes_db import Z2, Provenance, Scheme, Target
from ..schemes_db.factor import Factor

Words = npt.NDArray[np.uint64]

WORD_BITS = 64
"""Blocks that a factor of a packed term may have."""

MAX_TERMS = 512
"""Terms that a walk can hold: eight words of slots."""


@dataclass(frozen=True, eq=False)
class PackedTerms:
    """The terms of a scheme over GF(2): bit b of `words[f, r]` is the coefficient of block b in factor f of term r.

    `words` is (3, R) uint64, read-only; factors stand in the order U, V, W and blocks are flat
    row-major indices, so an absent block is a bit that is never set.

    Raises:
        PlanError: a factor has more than 64 blocks, or there are more than 512 terms.
    """

    target: Target
    words: Words

    def __post_init__(self) -> None:
        m, k, n = self.target.shape
        if max(m * k, k * n, m * n) > WORD_BITS:
            raise PlanError(
                f"{self.target} has a factor of {max(m * k, k * n, m * n)} blocks; a walk packs at most {WORD_BITS}, "
                f"so choose a grid of at most 8x8 blocks a matrix"
            )
        if self.rank > MAX_TERMS:
            raise PlanError(f"{self.rank} terms of {self.target} do not fit: a walk holds at most {MAX_TERMS}")
        self.words.setflags(write=False)

    @property
    def rank(self) -> int:
        return int(self.words.shape[1])

    @classmethod
    def naive(cls, target: Target) -> PackedTerms:
        """One product for each term of the target's tensor."""
        if len(target.terms) > MAX_TERMS:
            raise PlanError(f"{len(target.terms)} terms of {target} do not fit: a walk holds at most {MAX_TERMS}")
        # A block beyond the word would shift out silently; clipped here, it is refused in __post_init__.
        places = np.minimum(target.terms.T, WORD_BITS - 1).astype(np.uint64)
        return cls(target, np.uint64(1) << places)

    @classmethod
    def from_scheme(cls, scheme: Scheme) -> PackedTerms:
        """The scheme's coefficients modulo 2.

        Raises:
            PlanError: it does not fit, or a denominator is even.
        """
        reduced = scheme if scheme.ring is Z2 else scheme.over_z2()
        if reduced is None:
            raise PlanError(f"{scheme!r} has an even denominator, so it means nothing modulo 2")
        words = np.zeros((3, reduced.rank), dtype=np.uint64)
        for row, factor in zip(words, reduced.factors, strict=True):
            places = np.minimum(factor.indices, WORD_BITS - 1).astype(np.uint64)
            np.bitwise_or.at(row, factor.product, np.uint64(1) << places)
        return cls(scheme.target, words)

    def to_scheme(self, provenance: Provenance | None = None) -> Scheme:
        """The scheme over Z2 with these terms, in this order."""
        m, k, n = self.target.shape
        factors = []
        for row, (rows, cols) in zip(self.words, ((m, k), (k, n), (m, n)), strict=True):
            bits = (row[:, None] >> np.arange(rows * cols, dtype=np.uint64)) & np.uint64(1)
            factors.append(Factor.from_dense(bits.reshape(-1, rows, cols).astype(np.int64)))
        u, v, w = factors
        return Scheme(self.target, u, v, w, Z2, provenance=provenance or Provenance())


def lanes_for(terms: int) -> int:
    """The number of 64-bit words that a set of so many slots takes: 1, 2, 4 or 8.

    Raises:
        PlanError: more than 512.
    """
    for lanes in (1, 2, 4, 8):
        if terms <= lanes * WORD_BITS:
            return lanes
    raise PlanError(f"{terms} terms do not fit: a walk holds at most {MAX_TERMS}")

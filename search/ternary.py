"""Terms over {-1, 0, 1} with every factor packed into one 64-bit word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import PlanError
from ..schemes_db import Provenance, Scheme, Target, Z
from ..schemes_db.factor import Factor
from .packed import MAX_TERMS, PackedTerms, Words

HALF_BITS = 32
"""Blocks that a factor of a ternary term may have."""

_HALF, _LOW, _ONE = np.uint64(HALF_BITS), np.uint64((1 << HALF_BITS) - 1), np.uint64(1)


@dataclass(frozen=True, eq=False)
class TernaryTerms:
    """The terms of a scheme over Z with all coefficients in {-1, 0, 1}.

    `words` is (3, R) uint64, read-only: bit b of `words[f, r]` is set where the coefficient of block
    b in factor f of term r is 1, and bit 32 + b where it is -1.

    Raises:
        PlanError: a factor has more than 32 blocks, or there are more than 512 terms.
    """

    target: Target
    words: Words

    def __post_init__(self) -> None:
        m, k, n = self.target.shape
        if max(m * k, k * n, m * n) > HALF_BITS:
            raise PlanError(
                f"{self.target} has a factor of {max(m * k, k * n, m * n)} blocks; a ternary walk packs at most "
                f"{HALF_BITS}, so walk over Z2 and lift"
            )
        if self.rank > MAX_TERMS:
            raise PlanError(f"{self.rank} terms of {self.target} do not fit: a walk holds at most {MAX_TERMS}")
        self.words.setflags(write=False)

    @property
    def rank(self) -> int:
        return int(self.words.shape[1])

    @classmethod
    def naive(cls, target: Target) -> TernaryTerms:
        """One product for each term of the target's tensor."""
        if len(target.terms) > MAX_TERMS:
            raise PlanError(f"{len(target.terms)} terms of {target} do not fit: a walk holds at most {MAX_TERMS}")
        # A block beyond the half word is clipped here and refused in __post_init__.
        return cls(target, _ONE << np.minimum(target.terms.T, HALF_BITS - 1).astype(np.uint64))

    @classmethod
    def from_scheme(cls, scheme: Scheme) -> TernaryTerms:
        """The terms of a ternary scheme.

        Raises:
            PlanError: it does not fit, is not over Z or Q, or has other coefficients.
        """
        if scheme.ring.characteristic or not scheme.ternary:
            raise PlanError(f"{scheme!r} has coefficients other than -1, 0 and 1: a ternary walk can't start there")
        words = np.zeros((3, scheme.rank), dtype=np.uint64)
        for row, factor in zip(words, scheme.factors, strict=True):
            places = np.minimum(factor.indices, HALF_BITS - 1).astype(np.uint64)
            places += np.where(factor.values < 0, _HALF, np.uint64(0))
            np.bitwise_or.at(row, factor.product, _ONE << places)
        return cls(scheme.target, words)

    def dense(self) -> tuple[np.ndarray, ...]:
        """U (R, mk), V (R, kn) and W (R, mn) as int64."""
        m, k, n = self.target.shape
        factors = []
        for row, size in zip(self.words, (m * k, k * n, m * n), strict=True):
            places = np.arange(size, dtype=np.uint64)
            plus = (row[:, None] >> places) & _ONE
            minus = (row[:, None] >> (places + _HALF)) & _ONE
            factors.append(plus.astype(np.int64) - minus.astype(np.int64))
        return tuple(factors)

    def to_scheme(self, provenance: Provenance | None = None) -> Scheme:
        """The scheme over Z with these terms, in this order."""
        m, k, n = self.target.shape
        u, v, w = (
            Factor.from_dense(dense.reshape(-1, rows, cols))
            for dense, (rows, cols) in zip(self.dense(), ((m, k), (k, n), (m, n)), strict=True)
        )
        return Scheme(self.target, u, v, w, Z, provenance=provenance or Provenance())

    def holds(self) -> bool:
        """Whether the terms sum to the target's tensor over Z: every Brent equation."""
        u, v, w = self.dense()
        total = np.einsum("ra,rb,rc->abc", u, v, w, optimize=True)
        for a, b, c in self.target.terms:
            total[a, b, c] -= 1
        return not total.any()


Terms = PackedTerms | TernaryTerms
"""What a walk without symmetry starts from."""


def canonical(words: Words) -> tuple[Words, Words]:
    """Factors (3, R) whose lowest coefficient is 1, and the signs (R,) taken out: 0 for plus, 32 for minus."""
    support = (words | (words >> _HALF)) & _LOW
    lowest = support & (~support + _ONE)
    turn = np.where((words >> _HALF) & lowest != 0, _HALF, np.uint64(0))
    turned = np.where(turn != 0, (words << _HALF) | (words >> _HALF), words)
    return turned, np.bitwise_xor.reduce(turn, axis=0)

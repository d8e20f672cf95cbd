"""Terms with every factor packed into 64-bit words, and the subclass over GF(2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db import Z2, Provenance, Ring, Scheme, Target
from ...schemes_db.factor import Factor
from .words import WORD_BITS, Words, bits_of_words, block_words, is_wide

Vector = npt.NDArray[np.int64]
"""(walkers,) numbers, or indices of some walkers."""

MAX_TERMS = 512
"""Maximum number of terms of a walk: eight words of slots."""

Same = TypeVar("Same", bound="SchemeTerms")


@dataclass(frozen=True, eq=False)
class SchemeTerms:
    """The terms of a scheme, the start of a walk; a subclass for each ring.

    `words` is (3 planes, R) uint64, read-only. Bit b of `words[f, r]` is set where the coefficient of
    block b in factor f of term r is 1, of `words[3 + f, r]` where it is -1; over GF(2) there is one
    plane only. Factors are in the order U, V, W and blocks are flat row-major indices, so the bit of an
    absent block is never set.

    Raises:
        PlanError: a factor has more than 64 blocks, or there are more than 512 terms.
    """

    target: Target
    words: Words

    ring: ClassVar[Ring]
    planes: ClassVar[int]

    def __post_init__(self) -> None:
        m, k, n = self.target.shape
        if is_wide(self.target) and not (self.planes == 1 and self.target.is_general):
            raise PlanError(
                f"{self.target} has a factor of {max(m * k, k * n, m * n)} blocks; a walk packs at most {WORD_BITS}, "
                f"or more of a full product modulo 2, so choose a grid of at most 8x8 blocks a matrix"
            )
        if self.rank > MAX_TERMS:
            raise PlanError(f"{self.rank} terms of {self.target} do not fit: a walk holds at most {MAX_TERMS}")
        self.words.setflags(write=False)

    @property
    def rank(self) -> int:
        return int(self.words.shape[1])

    @property
    def support(self) -> Words:
        """(3, R): masks of the blocks with a nonzero coefficient."""
        return np.bitwise_or.reduce(self.words.reshape(-1, 3, self.rank), axis=0)

    @classmethod
    def naive(cls: type[Same], target: Target) -> Same:
        """Return one product for each term of the target's tensor that is not 0 in the ring.

        Raises:
            PlanError: too many terms for a walk, none in the ring, or a coefficient other than -1, 0, 1 over Z.
        """
        values = target.term_values
        if residues := cls.ring.characteristic:
            values = (values + residues // 2) % residues - residues // 2 if residues > 2 else values % 2
        elif np.abs(values).max(initial=0) > 1:
            raise PlanError(f"{target} has coefficients beyond -1, 0, 1: take a walk modulo 2 or 3, and a lift")
        terms, values = target.terms[values != 0], values[values != 0]
        if not len(terms):
            raise PlanError(f"{target} is zero over {cls.ring.name}: there is no product to save")
        if len(terms) > MAX_TERMS:
            raise PlanError(f"{len(terms)} terms of {target} do not fit: a walk holds at most {MAX_TERMS}")
        bits = np.stack([table[blocks] for table, blocks in zip(block_words(target), terms.T, strict=True)])
        words = np.zeros((3 * cls.planes, len(terms)), dtype=np.uint64)
        words[:3] = bits
        if cls.planes == 2:
            words[2], words[5] = np.where(values > 0, bits[2], 0), np.where(values < 0, bits[2], 0)
        return cls(target, words)

    @classmethod
    def from_scheme(cls: type[Same], scheme: Scheme) -> Same:
        """Return the terms of a scheme, in its order.

        Raises:
            PlanError: the scheme does not fit packed words, or means nothing over the ring.
        """
        scheme = cls._reduced(scheme)
        words = np.zeros((3 * cls.planes, scheme.rank), dtype=np.uint64)
        for f, (factor, table) in enumerate(zip(scheme.factors, block_words(scheme.target), strict=True)):
            plane = np.where(factor.values == 1, 0, cls.planes - 1)
            np.bitwise_xor.at(words, (3 * plane + f, factor.product), table[factor.indices])
        return cls(scheme.target, words)

    @classmethod
    def _reduced(cls, scheme: Scheme) -> Scheme:
        """Return a scheme over the ring: its coefficients are 1 and, with two planes, -1 (or 2 mod 3)."""
        raise NotImplementedError

    def dense(self) -> tuple[npt.NDArray[np.int64], ...]:
        """Return U (R, mk), V (R, kn) and W (R, mn) as int64."""
        factors = []
        for f, kinds in enumerate(self.target.kind_arrays):
            plus, *minus = (bits_of_words(row, kinds.size) for row in self.words[f::3])
            factors.append(plus - minus[0] if minus else plus)
        return tuple(factors)

    def to_scheme(self, provenance: Provenance | None = None) -> Scheme:
        """Return the scheme over the ring with these terms, in this order."""
        residues = self.ring.characteristic
        u, v, w = (
            Factor.from_dense((dense % residues if residues else dense).reshape(-1, *kinds.shape))
            for dense, kinds in zip(self.dense(), self.target.kind_arrays, strict=True)
        )
        return Scheme(self.target, u, v, w, self.ring, provenance=provenance or Provenance())


@dataclass(frozen=True, eq=False)
class PackedTerms(SchemeTerms):
    """The terms of a scheme over GF(2)."""

    ring = Z2
    planes = 1

    @classmethod
    def _reduced(cls, scheme: Scheme) -> Scheme:
        reduced = scheme if scheme.ring is Z2 else scheme.over_z2()
        if reduced is None:
            raise PlanError(f"{scheme!r} has an even denominator, so it means nothing modulo 2")
        return reduced

    def dense(self) -> tuple[npt.NDArray[np.int64], ...]:
        """Return U (R, mk), V (R, kn) and W (R, mn); terms that others make superfluous are left out of wide factors.

        Raises:
            PlanError: no wide factors have these words.
        """
        if not is_wide(self.target):
            return super().dense()
        from .images import factors_of  # imports a compiler

        return factors_of(self.target, self.words)


def lanes_for(terms: int) -> int:
    """Return the number of 64-bit words of a set of `terms` slots: 1, 2, 4 or 8.

    Raises:
        PlanError: there are more than 512 terms.
    """
    if terms > MAX_TERMS:
        raise PlanError(f"{terms} terms do not fit: a walk holds at most {MAX_TERMS}")
    return next(lanes for lanes in (1, 2, 4, 8) if terms <= lanes * WORD_BITS)

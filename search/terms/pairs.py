"""Schemes for full products that are invariant under the reversal of rows and columns, over GF(2).

The reversal maps entry (i, j) of an r x s matrix to (r-1-i, s-1-j), in A, B and C at once; so it permutes the terms of
the naive scheme of every format. An invariant scheme is a set of pairs {a b c, a' b' c'} of a term and its reversal,
and of terms that are their own reversal. Source: the group Z2 of Moosbauer and Poole, "Flip graphs with symmetry"
(arXiv 2502.04514), who use it with the cyclic shift on square formats; alone it is a symmetry of all formats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import PlanError
from ...schemes_db import Provenance, Scheme, Target
from .orbits import mirrored_layout, reversed_word
from .packed import PackedTerms, Words


@dataclass(frozen=True, eq=False)
class PairTerms:
    """A set of terms over GF(2) that is invariant under reversal.

    `words` is (3, K) uint64: one term of each pair, and the terms that are their own reversal, in the layout of
    `orbits.mirrored_layout`, where reversing the 64 bits of a word reverses the matrix. The rank is 2 K less the number
    of terms that are their own reversal.

    Raises:
        PlanError: the target is not a full product.
    """

    target: Target
    words: Words

    def __post_init__(self) -> None:
        refuse_structured(self.target)
        self.words.setflags(write=False)

    @property
    def own(self) -> Words:
        """(K,) bool: the terms that are their own reversal."""
        terms = self.words.T.tolist()
        return np.array([all(reversed_word(word) == word for word in term) for term in terms], dtype=bool)

    @property
    def rank(self) -> int:
        return int(2 * self.words.shape[1] - np.count_nonzero(self.own))

    @classmethod
    def naive(cls, target: Target) -> PairTerms:
        """Return the naive scheme."""
        return cls.from_packed(PackedTerms.naive(target))

    @classmethod
    def from_scheme(cls, scheme: Scheme) -> PairTerms:
        """Return the pairs of a scheme modulo 2.

        Raises:
            PlanError: the scheme is not invariant under reversal, or does not fit packed words.
        """
        return cls.from_packed(PackedTerms.from_scheme(scheme))

    @classmethod
    def from_packed(cls, terms: PackedTerms) -> PairTerms:
        """Return the pairs of a set of terms.

        Raises:
            PlanError: the terms are not invariant under reversal.
        """
        refuse_structured(terms.target)
        sizes = _sizes(terms.target)
        mirrored = np.stack([mirrored_layout(row, size) for row, size in zip(terms.words, sizes, strict=True)])
        left = dict.fromkeys(map(tuple, mirrored.T.tolist()))
        found = []
        while left:
            term, _ = left.popitem()
            image = tuple(map(reversed_word, term))
            found.append(term)
            if image != term:
                if image not in left:
                    raise PlanError(
                        f"a scheme of {terms.target} is not invariant under reversal: start the walk elsewhere"
                    )
                del left[image]
        return cls(terms.target, np.array(found, dtype=np.uint64).reshape(-1, 3).T.copy())

    def packed(self) -> PackedTerms:
        """Return all terms as `PackedTerms`."""
        images = [tuple(map(reversed_word, term)) for term in self.words.T[~self.own].tolist()]
        both = np.concatenate([self.words, np.array(images, dtype=np.uint64).reshape(-1, 3).T], axis=1)
        sizes = _sizes(self.target)
        rows = [mirrored_layout(row, size, back=True) for row, size in zip(both, sizes, strict=True)]
        return PackedTerms(self.target, np.stack(rows))

    def to_scheme(self, provenance: Provenance | None = None) -> Scheme:
        """Return the scheme over Z2 with these terms."""
        return self.packed().to_scheme(provenance)


def refuse_structured(target: Target) -> None:
    """Raise a PlanError if a target is not a full product: reversal maps a lower triangle to an upper one."""
    if not target.is_general:
        raise PlanError(f"{target} is not invariant under reversal: walk flip-z2 needs a full product")


def _sizes(target: Target) -> tuple[int, int, int]:
    m, k, n = target.shape
    return m * k, k * n, m * n

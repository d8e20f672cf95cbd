"""Schemes for full products that are invariant under an involution of rows and columns, over GF(2).

The reversal maps entry (i, j) of an r x s matrix to (r-1-i, s-1-j), in A, B and C at once; so it permutes the terms of
the naive scheme of every format, as do the other involutions of `involution`. An invariant scheme is a set of pairs
{a b c, a' b' c'} of a term and its image, and of terms that are their own image. Source: the group Z2 of Moosbauer and
Poole, "Flip graphs with symmetry" (arXiv 2502.04514), who reverse square formats, with the cyclic shift; alone the
reversal is a symmetry of all formats, and so are the other involutions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...schemes_db import Provenance, Scheme, Target
from .involution import Swaps, backward, checked, images, mirrored_layout, representatives, reversal, reversed_term
from .packed import PackedTerms
from .words import Words


@dataclass(frozen=True, eq=False)
class PairTerms:
    """A set of terms over GF(2) that is invariant under the involution with these swaps.

    `words` is (3, K) uint64: one term of each pair, and the terms that are their own image, in the layout of
    `involution.mirrored_layout`, where reversing the 64 bits of a word maps the matrix to its image. The rank is 2 K
    less the number of terms that are their own image.

    Raises:
        PlanError: the target has no such involution.
    """

    target: Target
    words: Words
    swaps: Swaps

    def __post_init__(self) -> None:
        checked(self.swaps, self.target)
        self.words.setflags(write=False)

    @property
    def own(self) -> npt.NDArray[np.bool_]:
        """(K,): the terms that are their own image."""
        return (backward(self.words) == self.words).all(axis=0)

    @property
    def rank(self) -> int:
        return int(2 * self.words.shape[1] - np.count_nonzero(self.own))

    @classmethod
    def naive(cls, target: Target, swaps: Swaps | None = None) -> PairTerms:
        return cls.from_packed(PackedTerms.naive(target), swaps)

    @classmethod
    def from_scheme(cls, scheme: Scheme, swaps: Swaps | None = None) -> PairTerms:
        """Return the pairs of a scheme modulo 2.

        Raises:
            PlanError: the scheme is not invariant, or does not fit packed words.
        """
        return cls.from_packed(PackedTerms.from_scheme(scheme), swaps)

    @classmethod
    def from_packed(cls, terms: PackedTerms, swaps: Swaps | None = None) -> PairTerms:
        """Return the pairs of a set of terms; without swaps those of the reversal.

        Raises:
            PlanError: the terms are not invariant, or the target has no such involution.
        """
        swaps = checked(reversal(terms.target) if swaps is None else swaps, terms.target)
        mirrored = np.stack(
            [mirrored_layout(row, image) for row, image in zip(terms.words, images(terms.target, swaps), strict=True)]
        )
        name = "reversal" if swaps == reversal(terms.target) else f"the swaps {','.join(map(str, swaps))}"
        refusal = f"a scheme of {terms.target} is not invariant under {name}: start the walk elsewhere"
        return cls(terms.target, representatives(mirrored, lambda term: [reversed_term(term)], refusal), swaps)

    def packed(self) -> PackedTerms:
        both = np.concatenate([self.words, backward(self.words[:, ~self.own])], axis=1)
        rows = [
            mirrored_layout(row, image, back=True)
            for row, image in zip(both, images(self.target, self.swaps), strict=True)
        ]
        return PackedTerms(self.target, np.stack(rows))

    def to_scheme(self, provenance: Provenance | None = None) -> Scheme:
        return self.packed().to_scheme(provenance)

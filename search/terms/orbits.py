"""Schemes that a small group maps to themselves, over GF(2): one term of each orbit.

With the third factor transposed, a square target is the sum of e_ij x e_jk x e_ki, which is invariant under the cyclic
shift of the three matrices. So a scheme that is invariant too is a set of orbits {a b c, b c a, c a b} and of cubes
a a a. Reversal, or another of `involution`, exchanges terms in pairs {a b c, a' b' c'} or leaves them; it permutes the
terms of the naive scheme of every format.
Source: Moosbauer and Poole, "Flip graphs with symmetry" (arXiv 2502.04514), who combine both on square formats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db import Provenance, Scheme, Target
from .involution import Swaps, backward, checked, images, mirrored_layout, reversal
from .packed import PackedTerms
from .words import Words, with_moved_bits

Term = tuple[int, int, int]
"""The words of a term's factors."""

NEIGHBOURS_OF_6 = ((0, 1), (2, 3), (4, 5))
"""Indices of the diagonal of 6x6x6, from 0, in pairs: the entries of a pair are summed in one cube."""


@dataclass(frozen=True, eq=False)
class SymmetricTerms:
    """A set of terms over GF(2) that a group maps to itself; a subclass for each group.

    `words` is (3, K) uint64, one term of each orbit. With the cyclic shift bit i n + j is entry (i, j), in the third
    factor entry (j, i) of C, and `cubes` (D,) are the matrices of terms a a a. With an involution, given by `swaps`,
    words are in the layout of `involution.mirrored_layout`, where reversing their 64 bits maps a matrix to its image.

    Raises:
        PlanError: the target does not have the symmetry.
    """

    target: Target
    words: Words
    cubes: Words = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    swaps: Swaps | None = None

    order: ClassVar[int]
    """The order of the group: 2 for an involution, 3 for the cyclic shift, 6 for both."""

    def __post_init__(self) -> None:
        self.fitting(self.target, self.swaps)
        self.words.setflags(write=False)
        self.cubes.setflags(write=False)

    @classmethod
    def fitting(cls, target: Target, swaps: Swaps | None) -> Swaps | None:
        """Return the swaps of the group's involution, by default those of reversal; None if it has none.

        Raises:
            PlanError: the target does not have the symmetry.
        """
        if cls.order > 2:
            side(target)
        return checked(swaps or reversal(target), target) if cls.order % 2 == 0 else None

    @property
    def own(self) -> npt.NDArray[np.bool_]:
        """(K,): the terms that are their own image under the involution."""
        return (backward(self.words) == self.words).all(axis=0)

    @property
    def rank(self) -> int:
        count = self.words.shape[1] if self.order == 3 else 2 * self.words.shape[1] - np.count_nonzero(self.own)
        return int((3 if self.order > 2 else 1) * count + len(self.cubes))

    @classmethod
    def naive(cls, target: Target, swaps: Swaps | None = None) -> Self:
        return cls.from_packed(PackedTerms.naive(target), swaps)

    @classmethod
    def from_scheme(cls, scheme: Scheme, swaps: Swaps | None = None) -> Self:
        """Return the orbits of a scheme modulo 2.

        Raises:
            PlanError: the scheme does not have the symmetry, or does not fit packed words.
        """
        cls.fitting(scheme.target, swaps)
        return cls.from_packed(PackedTerms.from_scheme(scheme), swaps)

    @classmethod
    def from_packed(cls, terms: PackedTerms | OrbitTerms, swaps: Swaps | None = None) -> Self:
        """Return the orbits of a set of terms; those under the cyclic shift may be given as such.

        Raises:
            PlanError: the terms or their target do not have the symmetry.
        """
        target, words, cubes = terms.target, terms.words, getattr(terms, "cubes", np.zeros(0, dtype=np.uint64))
        swaps = cls.fitting(target, swaps)
        if cls.order > 2 and not isinstance(terms, OrbitTerms):
            words = np.stack([*words[:2], transposed(words[2], target.m)])
            refusal = f"a scheme of {target} is not symmetric under the cyclic shift: start the walk elsewhere"
            words = representatives(words, lambda term: (term[1:] + term[:1], term[2:] + term[:2]), refusal)
            cube = (words[0] == words[1]) & (words[0] == words[2])
            words, cubes = words[:, ~cube].copy(), words[0, cube]
        return cls._paired(target, words, cubes, swaps) if swaps else cls(target, words, cubes)

    @classmethod
    def _paired(cls, target: Target, words: Words, cubes: Words, swaps: Swaps) -> Self:
        """Return the orbits under an involution of terms or of their orbits under the cyclic shift.

        Raises:
            PlanError: they are not invariant.
        """
        name = "reversal" if swaps == reversal(target) else f"the swaps {','.join(map(str, swaps))}"
        relation = "symmetric" if cls.order > 2 else "invariant"
        refusal = f"a scheme of {target} is not {relation} under {name}: start the walk elsewhere"
        every = images(target, swaps)
        cubes = mirrored_layout(cubes, every[0])
        mirrored = np.stack([mirrored_layout(row, image) for row, image in zip(words, every, strict=True)])
        terms, backwards = (
            [min((a, b, c), (b, c, a), (c, a, b)) if cls.order > 2 else (a, b, c) for a, b, c in some.T.tolist()]
            for some in (mirrored, backward(mirrored))
        )
        image_of = dict(zip(terms, backwards, strict=True))
        found = representatives(columns(terms), lambda term: [image_of[term]], refusal)
        if set(backward(cubes).tolist()) != set(cubes.tolist()):
            raise PlanError(refusal)
        return cls(target, found, cubes, swaps)

    def packed(self) -> PackedTerms:
        """Return all terms."""
        words, cubes = self.words, self.cubes
        if swaps := self.fitting(self.target, self.swaps):
            every, both = images(self.target, swaps), np.concatenate([words, backward(words[:, ~self.own])], axis=1)
            words = np.stack([mirrored_layout(row, image, back=True) for row, image in zip(both, every, strict=True)])
            cubes = mirrored_layout(cubes, every[0], back=True)
        if self.order > 2:
            a, b, c = words
            words = np.stack([np.concatenate([*part, cubes]) for part in ((a, b, c), (b, c, a), (c, a, b))])
            words[2] = transposed(words[2], self.target.m)
        return PackedTerms(self.target, words)

    def to_scheme(self, provenance: Provenance | None = None) -> Scheme:
        return self.packed().to_scheme(provenance)


class OrbitTerms(SymmetricTerms):
    """Terms that are invariant under the cyclic shift, of a full square product of at most 8x8 blocks."""

    order = 3

    @classmethod
    def naive(cls, target: Target, swaps: Swaps | None = None, reversible: bool = False) -> OrbitTerms:
        """Return the naive scheme with the cubes of entries (i, i) and (j, j) joined into one for j = n-1-i.

        (a + a')^3 is a^3 + a'^3 plus the orbit of a a' (a + a'), so joining costs an orbit and saves
        a cube. The number of cubes fixes the rank modulo 3, and ceil(n / 2) cubes have led to the lowest ranks known.

        With `reversible` the orbits of a a a' and a' a' a take the place of that one, so that the scheme is invariant
        under reversal too, which maps entry (i, j) to (n-1-i, n-1-j) in all three matrices. At 6x6x6 its cubes are
        those of neighbours, as of Moosbauer and Poole: rank 161 in 50 s of one H200, where those of i and n-1-i led to
        162.
        """
        n = side(target)
        entry = [[1 << (i * n + j) for j in range(n)] for i in range(n)]
        found = [  # the orbits that are no cubes
            (entry[i][j], entry[j][k], entry[k][i])
            for i in range(n)
            for j in range(i, n)
            for k in range(i, n)
            if (i, j) <= (j, k) and (i, j) < (k, i)
        ]
        joined = []
        outer = [(i, n - 1 - i) for i in range((n + 1) // 2)]
        for i, j in NEIGHBOURS_OF_6 if reversible and n == 6 else outer:
            a, b = 1 << (i * (n + 1)), 1 << (j * (n + 1))
            joined.append(a | b)
            if a != b:
                found += [(a, a, b), (b, b, a)] if reversible else [(a, b, a | b)]
        return cls(target, columns(found), np.array(joined, dtype=np.uint64))


class PairTerms(SymmetricTerms):
    """Terms that are invariant under an involution: one of each pair, and those that are their own image."""

    order = 2


class ReversibleTerms(SymmetricTerms):
    """Terms that are invariant under the cyclic shift and under reversal."""

    order = 6


def side(target: Target) -> int:
    """Return n of a full n x n x n product.

    Raises:
        PlanError: the target is not such a product, or n > 8.
    """
    m, k, n = target.shape
    if not (m == k == n <= 8 and target.is_general):
        raise PlanError(f"{target} has no cyclic symmetry: a symmetric walk needs a full square product up to 8x8x8")
    return n


def transposed(words: Words, n: int) -> Words:
    """Transpose packed n x n matrices."""
    return with_moved_bits(words, ((i * n + j, j * n + i) for i in range(n) for j in range(n)))


def representatives(words: Words, images: Callable[[Term], Iterable[Term]], refusal: str) -> Words:
    """Return (3, K): one term of each orbit of the terms (3, R), given the images of a term other than itself.

    Raises:
        PlanError: an image is missing; the message is `refusal`.
    """
    left, found = list(zip(*words.tolist(), strict=True)), []
    while left:
        term = left.pop()
        found.append(term)
        for image in images(term):
            if image != term:
                if image not in left:
                    raise PlanError(refusal)
                left.remove(image)
    return columns(found)


def columns(terms: list[Term]) -> Words:
    """Return terms as words (3, K)."""
    return np.array(terms, dtype=np.uint64).reshape(-1, 3).T.copy()

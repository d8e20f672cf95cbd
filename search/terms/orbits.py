"""Schemes for square formats that are invariant under the cyclic shift of the three matrices, over GF(2).

With the third factor transposed the target is the sum of e_ij x e_jk x e_ki, which is invariant under the
cyclic shift. A symmetric scheme is a set of orbits {a b c, b c a, c a b} and of cubes a a a.
Source: Moosbauer and Poole, "Flip graphs with symmetry" (arXiv 2502.04514).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import PlanError
from ...schemes_db import Provenance, Scheme, Target
from .involution import Term, backward, mirrored_layout, representatives, reversed_term
from .packed import PackedTerms
from .words import Words, with_moved_bits

WHOLE_REFUSED = "whole orbits are those of walks flip-c3z2 and flip-z2: leave orbits out, or take one of them"

NEIGHBOURS_OF_6 = ((0, 1), (2, 3), (4, 5))
"""Indices of the diagonal of 6x6x6, from 0, in pairs: the entries of a pair are summed in one cube."""


@dataclass(frozen=True, eq=False)
class OrbitTerms:
    """A symmetric set of terms over GF(2).

    `orbits` is (3, K) uint64, one term of each orbit, and `cubes` (D,) uint64; bit i n + j is entry
    (i, j), in the third factor entry (j, i) of C. The rank is 3 K + D.

    Raises:
        PlanError: the target is not a full square product of at most 8x8 blocks.
    """

    target: Target
    orbits: Words
    cubes: Words

    def __post_init__(self) -> None:
        side(self.target)
        self.orbits.setflags(write=False)
        self.cubes.setflags(write=False)

    @property
    def rank(self) -> int:
        return int(3 * self.orbits.shape[1] + len(self.cubes))

    @classmethod
    def naive(cls, target: Target, reversible: bool = False) -> OrbitTerms:
        """Return the naive scheme with the cubes of entries (i, i) and (j, j) joined into one for j = n-1-i.

        (a + a')^3 is a^3 + a'^3 plus the orbit of a a' (a + a'), so joining costs an orbit and saves
        a cube. The number of cubes fixes the rank modulo 3, and ceil(n / 2) cubes have led to the lowest ranks known.

        With `reversible` the orbits of a a a' and a' a' a take the place of that one, so that the scheme is invariant
        under reversal too, which maps entry (i, j) to (n-1-i, n-1-j) in all three matrices. At 6x6x6 its cubes are
        those of neighbours, as of Moosbauer and Poole: rank 161 in 50 s of one H200, where those of i and n-1-i led to
        162.

        Raises:
            PlanError: the target is no full square product.
        """
        n = side(target)
        found, joined = _naive_orbits(n), []
        outer = [(i, n - 1 - i) for i in range((n + 1) // 2)]
        for i, j in NEIGHBOURS_OF_6 if reversible and n == 6 else outer:
            a, b = 1 << (i * (n + 1)), 1 << (j * (n + 1))
            joined.append(a | b)
            if a != b:
                found += [(a, a, b), (b, b, a)] if reversible else [(a, b, a | b)]
        return cls(target, _columns(found), np.array(joined, dtype=np.uint64))

    @classmethod
    def from_scheme(cls, scheme: Scheme) -> OrbitTerms:
        """Return the orbits of a symmetric scheme modulo 2.

        Raises:
            PlanError: the scheme is not symmetric, or does not fit packed words.
        """
        side(scheme.target)
        return cls.from_packed(PackedTerms.from_scheme(scheme))

    @classmethod
    def from_packed(cls, terms: PackedTerms) -> OrbitTerms:
        """Return the orbits of symmetric terms.

        Raises:
            PlanError: they are not symmetric.
        """
        n, words = side(terms.target), terms.words
        rows = np.stack([words[0], words[1], transposed(words[2], n)])
        found = representatives(
            rows,
            lambda term: (term[1:] + term[:1], term[2:] + term[:2]),
            f"a scheme of {terms.target} is not symmetric under the cyclic shift: start the walk elsewhere",
        )
        cube = (found[0] == found[1]) & (found[0] == found[2])
        return cls(terms.target, found[:, ~cube].copy(), found[0, cube])

    def packed(self) -> PackedTerms:
        a, b, c = self.orbits
        words = np.stack([np.concatenate([*part, self.cubes]) for part in ((a, b, c), (b, c, a), (c, a, b))])
        words[2] = transposed(words[2], side(self.target))
        return PackedTerms(self.target, words)

    def to_scheme(self, provenance: Provenance | None = None) -> Scheme:
        return self.packed().to_scheme(provenance)


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


def reversible(terms: OrbitTerms) -> tuple[Words, Words]:
    """Return representatives (3, K) of the orbits under reversal (one of two exchanged, or fixed), and the cubes.

    Words are in the layout of `mirrored_layout`.

    Raises:
        PlanError: the terms are not invariant under reversal.
    """
    reverse = range(side(terms.target) ** 2)[::-1]
    orbits, cubes = (mirrored_layout(words, reverse) for words in (terms.orbits, terms.cubes))
    refusal = f"a scheme of {terms.target} is not symmetric under reversal: start the walk elsewhere"
    turned = _columns([_turned_first(term) for term in zip(*orbits.tolist(), strict=True)])
    found = representatives(turned, lambda term: [_turned_first(reversed_term(term))], refusal)
    if set(backward(cubes).tolist()) != set(cubes.tolist()):
        raise PlanError(refusal)
    return found, cubes


def unfolded(target: Target, orbits: Words, cubes: Words) -> OrbitTerms:
    """Invert `reversible`."""
    reverse = range(side(target) ** 2)[::-1]
    images = backward(orbits)
    terms = np.concatenate([orbits, images[:, (images != orbits).any(axis=0)]], axis=1)
    return OrbitTerms(target, *(mirrored_layout(words, reverse, back=True) for words in (terms, cubes)))


def _turned_first(term: Term) -> Term:
    """Return the smallest of the three cyclic shifts of a term."""
    a, b, c = term
    return min((a, b, c), (b, c, a), (c, a, b))


def _naive_orbits(n: int) -> list[Term]:
    """Return the orbits of the naive scheme that are no cubes."""
    entry = [[1 << (i * n + j) for j in range(n)] for i in range(n)]
    return [
        (entry[i][j], entry[j][k], entry[k][i])
        for i in range(n)
        for j in range(i, n)
        for k in range(i, n)
        if (i, j) <= (j, k) and (i, j) < (k, i)
    ]


def _columns(terms: list[Term]) -> Words:
    return np.array(terms, dtype=np.uint64).reshape(-1, 3).T.copy()

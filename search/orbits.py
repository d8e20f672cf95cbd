"""Schemes for square formats that a cyclic shift of the three matrices maps to themselves, over GF(2).

With the third factor transposed the target is the sum of e_ij x e_jk x e_ki, which the shift of the
three places keeps. A symmetric scheme is a set of orbits {a b c, b c a, c a b} and of cubes a a a.
Source: Moosbauer and Poole, "Flip graphs with symmetry" (arXiv 2502.04514).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import PlanError
from ..schemes_db import Provenance, Scheme, Target
from .packed import PackedTerms, Words

_ONE = np.uint64(1)

Term = tuple[int, int, int]


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
    def naive(cls, target: Target) -> OrbitTerms:
        """The naive scheme with the cubes of entries (i, i) and (n-1-i, n-1-i) joined into one.

        (a + a')^3 is a^3 + a'^3 and the orbit of a a' (a + a'), so joining costs an orbit and saves
        a cube. The number of cubes fixes the rank modulo 3, and these ceil(n / 2) cubes
        have led to the lowest ranks known.
        """
        n = side(target)
        entry = [[1 << (i * n + j) for j in range(n)] for i in range(n)]
        found = [
            (entry[i][j], entry[j][k], entry[k][i])
            for i in range(n)
            for j in range(i, n)
            for k in range(i, n)
            if (i, j) <= (j, k) and (i, j) < (k, i)
        ]
        cubes = []
        for i in range((n + 1) // 2):
            a, b = entry[i][i], entry[n - 1 - i][n - 1 - i]
            cubes.append(a | b)
            if a != b:
                found.append((a, b, a | b))
        return cls(target, _columns(found), np.array(cubes, dtype=np.uint64))

    @classmethod
    def from_scheme(cls, scheme: Scheme) -> OrbitTerms:
        """The orbits of a symmetric scheme, read modulo 2.

        Raises:
            PlanError: it is not symmetric, or does not fit.
        """
        side(scheme.target)
        return cls.from_packed(PackedTerms.from_scheme(scheme))

    @classmethod
    def from_packed(cls, terms: PackedTerms) -> OrbitTerms:
        """The orbits of symmetric terms.

        Raises:
            PlanError: they are not symmetric.
        """
        n, words = side(terms.target), terms.words
        left = [(int(u), int(v), int(w)) for u, v, w in zip(words[0], words[1], transposed(words[2], n), strict=True)]
        found, cubes = [], []
        while left:
            term = left.pop()
            if term[0] == term[1] == term[2]:
                cubes.append(term[0])
                continue
            found.append(term)
            for image in (term[1:] + term[:1], term[2:] + term[:2]):
                if image not in left:
                    raise PlanError(
                        f"a scheme of {terms.target} is not symmetric under the cyclic shift: start the walk elsewhere"
                    )
                left.remove(image)
        return cls(terms.target, _columns(found), np.array(cubes, dtype=np.uint64))

    def packed(self) -> PackedTerms:
        """All terms, as any scheme's."""
        a, b, c = self.orbits
        words = np.stack([np.concatenate([*part, self.cubes]) for part in ((a, b, c), (b, c, a), (c, a, b))])
        words[2] = transposed(words[2], side(self.target))
        return PackedTerms(self.target, words)

    def to_scheme(self, provenance: Provenance | None = None) -> Scheme:
        """The scheme over Z2 with these terms."""
        return self.packed().to_scheme(provenance)


def side(target: Target) -> int:
    """n of a full n x n x n product.

    Raises:
        PlanError: the target is another.
    """
    m, k, n = target.shape
    if not (m == k == n <= 8 and target.is_general):
        raise PlanError(f"{target} has no cyclic symmetry: a symmetric walk needs a full square product up to 8x8x8")
    return n


def transposed(words: Words, n: int) -> Words:
    """Packed n x n matrices, transposed."""
    result = np.zeros_like(words)
    for i in range(n):
        for j in range(n):
            result |= ((words >> np.uint64(i * n + j)) & _ONE) << np.uint64(j * n + i)
    return result


def _columns(terms: list[Term]) -> Words:
    return np.array(terms, dtype=np.uint64).reshape(-1, 3).T.copy()

"""Schemes for full products that are invariant under an involution of rows and columns, over GF(2).

The reversal maps entry (i, j) of an r x s matrix to (r-1-i, s-1-j), in A, B and C at once; so it permutes the terms of
the naive scheme of every format, as do the other involutions of `involution`. Source: the group Z2 of Moosbauer and
Poole, "Flip graphs with symmetry" (arXiv 2502.04514), who reverse square formats, with the cyclic shift; alone the
reversal is a symmetry of all formats, and so are the other involutions.
"""

from __future__ import annotations

from .orbits import SymmetricTerms


class PairTerms(SymmetricTerms):
    """Terms that are invariant under an involution: one of each pair, and those that are their own image."""

    order = 2

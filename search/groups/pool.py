"""The best schemes of a search for groups, by the rank of their product with an inner format."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..terms.ternary import TernaryTerms
from .product_rank import InnerFormat

POOL = 16
"""Number of best schemes that walks start from."""


class GroupPool:
    """The best schemes so far, each once.

    Attributes:
        lowest: the rank of the product of the best with the inner format.
    """

    def __init__(self, inner: InnerFormat) -> None:
        self._inner = inner
        self._entries: list[tuple[int, str, TernaryTerms]] = []

    def __iter__(self) -> Iterator[TernaryTerms]:
        return (terms for *_, terms in self._entries)

    @property
    def lowest(self) -> int:
        return self._entries[0][0]

    def offer(self, terms: TernaryTerms) -> bool:
        """Add a scheme if it is new and among the best; return whether it is the best."""
        scheme = terms.to_scheme()
        entry = (self._inner.product_rank(scheme), scheme.digest, terms)
        if any(known[1] == entry[1] for known in self._entries):
            return False
        best = not self._entries or entry[0] < self._entries[0][0]
        self._entries = sorted([*self._entries, entry], key=lambda one: (one[0], one[2].rank, one[1]))[:POOL]
        return best

    def draw(self, rng: np.random.Generator) -> TernaryTerms:
        """Return a random one."""
        return self._entries[int(rng.integers(len(self._entries)))][2]

"""The best schemes of a search, from which its walks start."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .terms.ternary import TernaryTerms

Cost = tuple[int, ...]
"""What schemes are compared by, lower is better; by the first number a scheme is the best."""


class ElitePool:
    """The `most` best distinct schemes so far, best first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: list[tuple[Cost, str, TernaryTerms]] = []

    def __iter__(self) -> Iterator[TernaryTerms]:
        return (terms for *_, terms in self._entries)

    @property
    def lowest(self) -> int:
        """The first number of the cost of the best."""
        return self._entries[0][0][0]

    def offer(self, cost: Cost, terms: TernaryTerms) -> bool:
        """Add a scheme if it is new and among the best; return whether it is better than all others."""
        digest = terms.to_scheme().digest
        if any(known == digest for _, known, _ in self._entries):
            return False
        best = not self._entries or cost[0] < self.lowest
        self._entries = sorted([*self._entries, (cost, digest, terms)], key=lambda one: one[:2])[: self._most]
        return best

    def draw(self, rng: np.random.Generator) -> TernaryTerms:
        return self._entries[int(rng.integers(len(self._entries)))][2]

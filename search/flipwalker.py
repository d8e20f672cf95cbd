"""The compiled flip walk over GF(2) as a walker."""

from __future__ import annotations

from .arena import BEST, FLIPS, STEPS, best_terms, make_arena
from .packed import PackedTerms
from .policy import Policy
from .walk import advance, rewind


class FlipWalker:
    """A walker over GF(2); see `walk.advance`.

    A start that is no naive scheme gets room for its plus transitions; a naive one only for its own
    terms, as it falls before a plus is of use.
    """

    def __init__(self, start: PackedTerms, seed: int, index: int, policy: Policy) -> None:
        naive = start.rank == len(start.target.terms)
        self._start, self._policy = start, policy
        self._arena = make_arena(start, seed, index, 0 if naive else policy.margin)
        self.lowest = start.rank

    @property
    def rank(self) -> int:
        return int(self._arena.tally[BEST])

    @property
    def flips(self) -> int:
        return int(self._arena.tally[FLIPS])

    @property
    def steps(self) -> int:
        return int(self._arena.tally[STEPS])

    def advance(self, goal: int, steps: int) -> None:
        advance(self._arena, self._policy, goal, steps)
        self.lowest = min(self.lowest, self.rank)

    def terms(self) -> PackedTerms:
        return best_terms(self._arena, self._start)

    def rewind(self) -> None:
        rewind(self._arena)

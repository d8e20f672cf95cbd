"""The compiled flip walk over GF(2) or {-1, 0, 1} as a walker."""

from __future__ import annotations

from .arena import BEST, FLIPS, STEPS, best_terms, make_arena, restart_from
from .policy import Policy
from .ternary import Terms
from .walk import advance, rewind


class FlipWalker:
    """A walker over the ring of its start; see `walk.advance`.

    A start that is no naive scheme gets room for its plus transitions; a naive one only for its own
    terms, as it falls before a plus is of use.
    """

    def __init__(self, start: Terms, seed: int, index: int, policy: Policy) -> None:
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

    def terms(self) -> Terms:
        return best_terms(self._arena, self._start)

    def rewind(self) -> None:
        rewind(self._arena)

    def start_from(self, terms: Terms) -> None:
        """Go to other terms, which are the start from now on.

        Raises:
            PlanError: they compute another target or are too many for this walk.
        """
        restart_from(self._arena, self._start, terms)
        rewind(self._arena)

"""The common part of walkers on symmetric schemes over GF(2): counters, steps, and the return to the start."""

from __future__ import annotations

from ...errors import PlanError
from .policy import Policy
from .slots import BEST, FLIPS, STATE, STEPS, WordArena
from .walk import advance, begin


class SymmetricWalker:
    """A walker in an arena; a subclass has `terms`, which depend on the symmetry.

    Raises:
        PlanError: the policy has bounds or fixed terms.
    """

    STATE = ("lowest", *(f"_arena.{name}" for name in STATE))
    """Mutable state, for `snapshot`."""

    def __init__(self, arena: WordArena, rank: int, policy: Policy) -> None:
        if policy.guarded or policy.keep:
            raise PlanError("a symmetric walk has no bounds: leave chance, full, nonzeros and keep as they are")
        self._arena, self._numbers, self.lowest = arena, policy.numbers, rank

    @property
    def rank(self) -> int:
        return int(self._arena.counters[BEST])

    @property
    def flips(self) -> int:
        return int(self._arena.counters[FLIPS])

    @property
    def steps(self) -> int:
        return int(self._arena.counters[STEPS])

    def advance(self, goal: int, steps: int) -> None:
        advance(self._arena, self._numbers, goal, steps)
        self.lowest = min(self.lowest, self.rank)

    def rewind(self) -> None:
        begin(self._arena, self._numbers)

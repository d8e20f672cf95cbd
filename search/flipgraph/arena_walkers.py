"""Walkers of the compiled walks: of every ring, and symmetric ones."""

from __future__ import annotations

from typing import Any

from ...errors import PlanError
from ..terms.packed import WORD_BITS, PackedTerms, SchemeTerms
from ..terms.pairs import PairTerms
from .arena import SymmetricTerms, make_arena, make_orbit_arena, rows_of, terms_in
from .constraints import make_guard
from .policy import Policy
from .slots import BEST, FLIPS, STATE, STEPS, WordArena
from .walk import advance, begin


class ArenaWalker:
    """A walker in the arena of `start`."""

    STATE = ("lowest", *(f"_arena.{name}" for name in STATE))
    """Mutable state, for `snapshot`."""

    def __init__(self, arena: WordArena, start: SchemeTerms | SymmetricTerms, policy: Policy) -> None:
        self._arena, self._start, self._policy, self._numbers = arena, start, policy, policy.numbers
        self.lowest = self.rank

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

    def terms(self) -> Any:
        return terms_in(self._arena.best, self._arena, self._start)

    def rewind(self) -> None:
        begin(self._arena, self._numbers)


class FlipWalker(ArenaWalker):
    """A walker over the ring of its start; see `walk.advance`.

    A start that is no naive scheme gets slots for plus transitions; a naive one only for its own terms, as its rank
    falls before a plus is useful.

    Raises:
        PlanError: the start does not fit the policy.
    """

    def __init__(self, start: SchemeTerms, seed: int, index: int, policy: Policy) -> None:
        room = 0 if start.rank == len(start.target.terms) else policy.margin
        super().__init__(make_arena(start, seed, index, room, policy), start, policy)

    def start_from(self, terms: SchemeTerms) -> None:
        """Restart from other terms, the new start.

        Raises:
            PlanError: they compute another target, are over another ring, or are too many for this walk.
        """
        slots = len(self._arena.kind.lanes) * WORD_BITS
        if terms.target != self._start.target or type(terms) is not type(self._start):
            raise PlanError(
                f"a walk on {self._start.target} can't go on from terms of {terms.target} or of another ring"
            )
        if terms.rank > slots:
            raise PlanError(f"{terms.rank} terms do not fit a walk of {slots} slots")
        make_guard(terms, self._policy)
        self._arena.start[:] = rows_of(terms, slots).ravel()
        begin(self._arena, self._numbers)


class OrbitWalker(ArenaWalker):
    """A walker on schemes with a symmetry: a flip changes the terms of an orbit, two, three or six, at a time.

    Raises:
        PlanError: the start does not have the symmetry of the walk, or the policy has bounds.
    """

    def __init__(self, start: SymmetricTerms, seed: int, index: int, policy: Policy, reverse: bool = False) -> None:
        if policy.guarded:
            raise PlanError("a symmetric walk has no bounds: leave chance, full and nonzeros as they are")
        room = policy.margin // (2 if isinstance(start, PairTerms) else 3) + 1
        super().__init__(make_orbit_arena(start, seed, index, room, policy, reverse), start, policy)

    def terms(self) -> PackedTerms:
        terms: PackedTerms = super().terms().packed()
        return terms

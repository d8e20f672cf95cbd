"""Walkers of the compiled walks: of every ring, and symmetric ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import PlanError
from ..terms.orbits import SymmetricTerms
from ..terms.packed import PackedTerms, SchemeTerms
from ..terms.words import WORD_BITS
from .arena import make_arena, make_orbit_arena, rows_of, terms_in
from .constraints import make_guard
from .policy import Policy
from .slots import BEST, FLIPS, STATE, STEPS, WordArena
from .walk import advance, begin


class ArenaWalker:
    """A walker in the arena of `start`, which also has `kept` products that the walk leaves as they are."""

    STATE = ("lowest", *(f"_arena.{name}" for name in STATE))
    """Mutable state, for `snapshot`."""

    def __init__(self, arena: WordArena, start: SchemeTerms | SymmetricTerms, policy: Policy, kept: int = 0) -> None:
        self._arena, self._start, self._policy, self._numbers = arena, start, policy, policy.numbers
        self._beside = kept
        self.lowest = self.rank

    @property
    def rank(self) -> int:
        return int(self._arena.counters[BEST]) + self._beside

    @property
    def flips(self) -> int:
        return int(self._arena.counters[FLIPS])

    @property
    def steps(self) -> int:
        return int(self._arena.counters[STEPS])

    def advance(self, goal: int, steps: int) -> None:
        advance(self._arena, self._numbers, goal - self._beside, steps)
        self.lowest = min(self.lowest, self.rank)

    def terms(self) -> Any:
        return terms_in(self._arena.best, self._arena, self._start)

    def rewind(self) -> None:
        begin(self._arena, self._numbers)


class FlipWalker(ArenaWalker):
    """A walker over the ring of its start; see `walk.advance`.

    The first `policy.keep` terms of a start are not part of the walk: they are prepended to its terms. A
    start that is no naive scheme gets slots for plus transitions; a naive one only for its own terms, as
    its rank falls before a plus is useful.

    Raises:
        PlanError: no terms are left to change, or the start does not fit the policy.
    """

    def __init__(self, start: SchemeTerms, seed: int, index: int, policy: Policy) -> None:
        self._kept, free = split(start, policy.keep)
        room = 0 if start.rank == len(start.target.terms) else policy.margin
        super().__init__(make_arena(free, seed, index, room, policy), free, policy, self._kept.rank)

    def terms(self) -> SchemeTerms:
        words = np.concatenate([self._kept.words, super().terms().words], axis=1)
        return type(self._kept)(self._kept.target, words)

    def start_from(self, terms: SchemeTerms) -> None:
        """Restart from other terms, the new start.

        Raises:
            PlanError: they compute another target, are over another ring, lack the fixed terms, or are
                too many for this walk.
        """
        kept, free = split(terms, self._policy.keep)
        slots = len(self._arena.kind.lanes) * WORD_BITS
        if terms.target != self._kept.target or type(terms) is not type(self._kept):
            raise PlanError(
                f"a walk on {self._kept.target} can't go on from terms of {terms.target} or of another ring"
            )
        if not np.array_equal(kept.words, self._kept.words):
            raise PlanError("a walk that keeps terms can't go on from others")
        if free.rank > slots:
            raise PlanError(f"{free.rank} terms do not fit a walk of {slots} slots")
        make_guard(free, self._policy)
        self._arena.start[:] = rows_of(free, slots).ravel()
        begin(self._arena, self._numbers)


def split(start: SchemeTerms, kept: int) -> tuple[SchemeTerms, SchemeTerms]:
    """Return the first `kept` terms, and the others.

    Raises:
        PlanError: there are no others.
    """
    if not 0 <= kept < max(start.rank, 1):
        raise PlanError(f"{kept} terms of {start.rank} can't be kept: none would be left to walk on")
    parts = (start.words[:, :kept].copy(), start.words[:, kept:].copy())
    first, rest = (type(start)(start.target, part) for part in parts)
    return first, rest


class OrbitWalker(ArenaWalker):
    """A walker on schemes with a symmetry: a flip changes the terms of an orbit, two, three or six, at a time.

    Raises:
        PlanError: the start does not fit, or the policy has bounds or fixed terms.
    """

    def __init__(self, start: SymmetricTerms, seed: int, index: int, policy: Policy) -> None:
        if policy.guarded or policy.keep:
            raise PlanError("a symmetric walk has no bounds: leave chance, full, nonzeros and keep as they are")
        room = policy.margin // (2 if start.order == 2 else 3) + 1
        super().__init__(make_orbit_arena(start, seed, index, room, policy), start, policy)

    def terms(self) -> PackedTerms:
        terms: PackedTerms = super().terms().packed()
        return terms

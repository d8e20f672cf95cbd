"""Walkers of the compiled walks, of every ring and symmetric ones: their memory, and the terms in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import PlanError
from ..seeds import splitmix
from ..terms.orbits import SymmetricTerms
from ..terms.packed import PackedTerms, SchemeTerms, lanes_for
from ..terms.rings import GF2, GF3, TERNARY
from ..terms.ternary import TernaryTerms, canonical, with_signs
from ..terms.words import WORD_BITS, Words
from .constraints import make_guard
from .orbit_flips import MAX_CUBES
from .policy import WHOLE_REFUSED, Policy
from .slots import BEST, BUCKET_BITS, FLIPS, STEPS, SlotKind, WordArena
from .walk import advance, begin

LINE_WORDS = 16
"""Words of two cache lines of 64 bytes, which processors prefetch in pairs."""


def make_arena(start: SchemeTerms, seed: int, index: int = 0, room: int = 0, policy: Policy | None = None) -> WordArena:
    """Create a walker at `start` with slots for at least `room` more terms.

    Raises:
        PlanError: more than 512 terms, a zero factor, or a factor with more nonzeros than the policy allows.
    """
    policy = policy or Policy()
    lanes = lanes_for(start.rank + room)
    terms = rows_of(start, lanes * WORD_BITS)
    ring = GF2 if start.planes == 1 else TERNARY if isinstance(start, TernaryTerms) else GF3
    kind = SlotKind((0,) * lanes, (0,) * ring, (0,), (0, 0) if policy.guarded else (0,))
    return _arena_of(kind, terms.ravel(), lanes, splitmix(seed, index), make_guard(start, policy), policy)


def make_orbit_arena(
    start: SymmetricTerms, seed: int, index: int = 0, room: int = 0, policy: Policy | None = None
) -> WordArena:
    """Create a symmetric walker at `start` with slots for at least `room` more orbits.

    Raises:
        PlanError: more than 512 orbits or 64 cubes, or a policy that does not exist.
    """
    orbits, cubes, turns = start.words, start.cubes, start.order
    lanes = lanes_for(orbits.shape[1] + room)
    policy = (policy or Policy()).checked()
    if policy.orbits == "whole" and turns == 3:
        raise PlanError(WHOLE_REFUSED)
    if len(cubes) > MAX_CUBES:
        raise PlanError(f"{len(cubes)} cubes do not fit: a symmetric walk holds at most {MAX_CUBES}")
    whole = (0, 0) if policy.orbits == "whole" else (0,)
    kind = SlotKind((0,) * (lanes if turns == 2 else 3 * lanes), (0,) * GF2, (0,) * turns, (0,), whole)
    slots = lanes * WORD_BITS
    terms = np.zeros(3 * slots + (0 if turns == 2 else MAX_CUBES), dtype=np.uint64)
    terms[: 3 * slots].reshape(3, slots)[:, : orbits.shape[1]] = orbits
    terms[3 * slots :][: len(cubes)] = cubes
    return _arena_of(kind, terms, lanes, splitmix(seed, index), np.zeros(11, dtype=np.uint64), policy)


def _arena_of(kind: SlotKind, terms: Words, lanes: int, state: int, guard: Words, policy: Policy) -> WordArena:
    """Create a walker at a start in the layout of `WordArena.x`, with `lanes` words of slots."""
    arena = WordArena(
        kind=kind,
        x=_apart(len(terms)),
        buckets=_apart(3 * lanes << BUCKET_BITS),
        active=_apart(3 * lanes),
        live=_apart(lanes),
        start=terms,
        best=_apart(len(terms)),
        rng=_apart(1),
        counters=_apart(9).view(np.int64),
        guard=_apart(len(guard)),
        scratch=_apart(3 * WORD_BITS).reshape(3, WORD_BITS),
    )
    arena.best[:], arena.rng[:], arena.guard[:] = terms, state, guard
    begin(arena, policy.numbers)
    return arena


def _apart(words: int) -> Words:
    """Allocate zeros that share no pair of cache lines with other data.

    A flip writes a few words of its own walker; if a cache line contains words of two walkers, two threads
    contend for it at every flip (false sharing).
    """
    block = np.zeros(words + 2 * LINE_WORDS, dtype=np.uint64)
    first = -(block.ctypes.data // 8) % LINE_WORDS
    return block[first : first + words]


def rows_of(terms: SchemeTerms, slots: int) -> Words:
    """Return the terms in the layout of `WordArena.x`, as rows.

    Raises:
        PlanError: a factor is zero.
    """
    if not terms.support.all():
        raise PlanError("a term with a zero factor can't start a walk: leave it out")
    rows = np.zeros((3 if terms.planes == 1 else 7, slots), dtype=np.uint64)
    words, signs = canonical(terms)
    rows[: len(words), : terms.rank] = words
    if terms.planes > 1:
        rows[-1, : terms.rank] = signs
    return rows


def terms_in(flat: Words, arena: WordArena, start: Any) -> Any:
    """Return the terms in an array of the layout of `WordArena.x`, of the type and with the symmetry of the start."""
    if isinstance(start, SchemeTerms):
        rows = flat.reshape(-1, len(arena.kind.lanes) * WORD_BITS)
        rows = rows[:, rows[0] != 0]
        return with_signs(start, rows[: 3 * start.planes], rows[-1])
    nodes, cubes = np.split(flat, [3 * WORD_BITS * len(arena.live)])
    orbits, cubes = nodes.reshape(3, -1)[:, nodes[: len(nodes) // 3] != 0], cubes[cubes != 0]
    return replace(start, words=orbits, cubes=cubes)


class ArenaWalker:
    """A walker in the arena of `start`, which also has `kept` products that the walk leaves as they are."""

    STATE = ("lowest", *(f"_arena.{name}" for name in WordArena._fields[1:]))
    """Mutable state, for `snapshot`: all arrays of the arena."""

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
    first, rest = (type(start)(start.target, part.copy()) for part in np.split(start.words, [kept], axis=1))
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

"""Walkers of the compiled symmetric walks over GF(2)."""

from __future__ import annotations

import numpy as np

from ...errors import PlanError
from ..seeds import splitmix
from ..terms.orbits import WHOLE_REFUSED, OrbitTerms, reversible, unfolded
from ..terms.packed import WORD_BITS, PackedTerms, Words, lanes_for
from ..terms.pairs import PairTerms
from ..terms.rings import GF2
from .arena import arena_of
from .flip_walker import ArenaWalker
from .orbit_flips import MAX_CUBES
from .policy import Policy
from .slots import SlotKind, WordArena


def make_orbit_arena(
    start: OrbitTerms | PairTerms,
    seed: int,
    index: int = 0,
    room: int = 0,
    policy: Policy | None = None,
    reverse: bool = False,
) -> WordArena:
    """Create a symmetric walker at `start` with slots for at least `room` more orbits.

    Raises:
        PlanError: more than 512 orbits or 64 cubes, a start without the symmetry of the walk, or a policy that does not
            exist.
    """
    if isinstance(start, PairTerms):
        orbits, cubes, turns = start.words, np.zeros(0, dtype=np.uint64), 2
    else:
        orbits, cubes = reversible(start) if reverse else (start.orbits, start.cubes)
        turns = 6 if reverse else 3
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
    return arena_of(kind, terms, lanes, splitmix(seed, index), np.zeros(11, dtype=np.uint64), policy)


def orbits_in(flat: Words, arena: WordArena, start: OrbitTerms | PairTerms) -> OrbitTerms | PairTerms:
    """Return the terms in an array of the layout of `WordArena.x`, with the symmetry of the start."""
    nodes, cubes = np.split(flat, [3 * WORD_BITS * len(arena.live)])
    orbits, cubes = nodes.reshape(3, -1)[:, nodes[: len(nodes) // 3] != 0], cubes[cubes != 0]
    if isinstance(start, PairTerms):
        return PairTerms(start.target, orbits, start.swaps)
    if len(arena.kind.turns) == 6:
        return unfolded(start.target, orbits, cubes)
    return OrbitTerms(start.target, orbits, cubes)


class OrbitWalker(ArenaWalker):
    """A walker on schemes with a symmetry: a flip changes the terms of an orbit, two, three or six, at a time.

    Raises:
        PlanError: the start does not have the symmetry of the walk, or the policy has bounds or fixed terms.
    """

    def __init__(
        self, start: OrbitTerms | PairTerms, seed: int, index: int, policy: Policy, reverse: bool = False
    ) -> None:
        if policy.guarded or policy.keep:
            raise PlanError("a symmetric walk has no bounds: leave chance, full, nonzeros and keep as they are")
        room = policy.margin // (2 if isinstance(start, PairTerms) else 3) + 1
        super().__init__(make_orbit_arena(start, seed, index, room, policy, reverse), policy)
        self._start = start

    def terms(self) -> PackedTerms:
        return orbits_in(self._arena.best, self._arena, self._start).packed()

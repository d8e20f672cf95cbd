"""Walkers of the compiled symmetric walks over GF(2)."""

from __future__ import annotations

import numpy as np

from ...errors import PlanError
from ..seeds import splitmix
from ..terms.orbits import WHOLE_REFUSED, OrbitTerms, reversible, unfolded
from ..terms.packed import WORD_BITS, PackedTerms, Words, lanes_for
from ..terms.rings import GF2
from .arena import arena_of
from .orbit_moves import MAX_CUBES
from .policy import Policy
from .slots import SlotKind, WordArena
from .symmetric_walker import SymmetricWalker


def make_orbit_arena(
    start: OrbitTerms,
    seed: int,
    index: int = 0,
    room: int = 0,
    policy: Policy | None = None,
    reverse: bool = False,
) -> WordArena:
    """Create a symmetric walker at `start` with slots for at least `room` more orbits.

    Raises:
        PlanError: more than 512 orbits or 64 cubes, or a start without the symmetry of the walk.
    """
    orbits, cubes = reversible(start) if reverse else (start.orbits, start.cubes)
    lanes = lanes_for(orbits.shape[1] + room)
    policy = (policy or Policy()).checked()
    if policy.orbits == "whole" and not reverse:
        raise PlanError(WHOLE_REFUSED)
    whole = (0, 0) if policy.orbits == "whole" else (0,)
    kind = SlotKind((0,) * (3 * lanes), (0,) * GF2, (0,) * (6 if reverse else 3), (0,), whole)
    terms = _flat(orbits, cubes, lanes * WORD_BITS)
    return arena_of(kind, terms, lanes, splitmix(seed, index), np.zeros(11, dtype=np.uint64), policy)


def orbits_in(flat: Words, arena: WordArena, start: OrbitTerms) -> OrbitTerms:
    """Return the terms in an array of the layout of `WordArena.x`."""
    nodes, cubes = flat[:-MAX_CUBES].reshape(3, -1), flat[-MAX_CUBES:]
    orbits, cubes = nodes[:, nodes[0] != 0], cubes[cubes != 0]
    if len(arena.kind.turns) == 6:
        return unfolded(start.target, orbits, cubes)
    return OrbitTerms(start.target, orbits, cubes)


def _flat(orbits: Words, cubes: Words, slots: int) -> Words:
    if len(cubes) > MAX_CUBES:
        raise PlanError(f"{len(cubes)} cubes do not fit: a symmetric walk holds at most {MAX_CUBES}")
    flat = np.zeros(3 * slots + MAX_CUBES, dtype=np.uint64)
    flat[: 3 * slots].reshape(3, slots)[:, : orbits.shape[1]] = orbits
    flat[3 * slots :][: len(cubes)] = cubes
    return flat


class OrbitWalker(SymmetricWalker):
    """A walker on the schemes with cyclic symmetry; a flip changes three terms at a time, six with reversal too.

    Raises:
        PlanError: the start does not have the symmetry of the walk, or the policy has bounds or fixed terms.
    """

    def __init__(self, start: OrbitTerms, seed: int, index: int, policy: Policy, reverse: bool = False) -> None:
        arena = make_orbit_arena(start, seed, index, policy.margin // 3 + 1, policy, reverse)
        super().__init__(arena, start.rank, policy)
        self._start = start

    def terms(self) -> PackedTerms:
        return orbits_in(self._arena.best, self._arena, self._start).packed()

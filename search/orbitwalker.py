"""The compiled symmetric walk over GF(2) as a walker."""

from __future__ import annotations

import numpy as np

from ..schemes_db import Target
from .arena import BEST, BUCKET_BITS, FLIPS, STEPS, Arena
from .orbit_moves import MAX_CUBES, load
from .orbits import OrbitTerms
from .packed import WORD_BITS, PackedTerms, Words, lanes_for
from .policy import Policy
from .seeds import splitmix
from .walk import advance, rewind


def make_orbit_arena(start: OrbitTerms, seed: int, index: int = 0, room: int = 0) -> Arena:
    """A symmetric walker at `start` with slots for at least `room` orbits more.

    Raises:
        PlanError: more than 512 orbits or 64 cubes.
    """
    lanes = lanes_for(start.orbits.shape[1] + room)
    terms = _flat(start, lanes * WORD_BITS)
    tally = np.zeros(13, dtype=np.int64)
    tally[BEST] = start.rank
    arena = Arena(
        lanes=(0,) * (3 * lanes),
        ring=(0,),
        x=np.zeros_like(terms),
        buckets=np.zeros(3 * lanes << BUCKET_BITS, dtype=np.uint64),
        active=np.zeros(3 * lanes, dtype=np.uint64),
        live=np.zeros(lanes, dtype=np.uint64),
        start=terms,
        best=terms.copy(),
        rng=np.array([splitmix(seed, index)], dtype=np.uint64),
        tally=tally,
        scratch=np.zeros((3, WORD_BITS), dtype=np.uint64),
    )
    load(arena, arena.start)
    return arena


def orbits_in(flat: Words, target: Target) -> OrbitTerms:
    """The terms in an array of the form of `Arena.x`."""
    nodes, cubes = flat[:-MAX_CUBES].reshape(3, -1), flat[-MAX_CUBES:]
    return OrbitTerms(target, nodes[:, nodes[0] != 0], cubes[cubes != 0])


def _flat(terms: OrbitTerms, slots: int) -> Words:
    flat = np.zeros(3 * slots + MAX_CUBES, dtype=np.uint64)
    flat[: 3 * slots].reshape(3, slots)[:, : terms.orbits.shape[1]] = terms.orbits
    flat[3 * slots :][: len(terms.cubes)] = terms.cubes
    return flat


class OrbitWalker:
    """A walker on the schemes with cyclic symmetry; a flip is of three terms at a time."""

    def __init__(self, start: OrbitTerms, seed: int, index: int, policy: Policy) -> None:
        self._target, self._policy = start.target, policy
        self._arena = make_orbit_arena(start, seed, index, policy.margin // 3 + 1)
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
        return orbits_in(self._arena.best, self._target).packed()

    def rewind(self) -> None:
        rewind(self._arena)

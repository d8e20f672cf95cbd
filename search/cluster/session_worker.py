"""Actor of a search worker: one session of the CPU's or the GPU's engine, driven from the head."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...schemes_db import Scheme
from ..flipgraph.policy import Policy
from ..flipgraph.vector import Vector
from ..flipgraph.walkers import WalkTerms
from ..runs.code import code_hash
from ..runs.distinct import DistinctPool
from ..runs.engine import Session, engine_of
from ..runs.population import Widening
from ..runs.snapshot import Arrays


class Standing(NamedTuple):
    """State of the walks of a worker: `ranks`, `lowest` and `flips` of its session."""

    ranks: Vector
    lowest: Vector
    flips: int


class SessionWorker:
    """A session, created by `start`; every call that changes it returns its new `Standing`."""

    _session: Session

    def code(self) -> str:
        """Return the hash of the code that runs here."""
        return code_hash()

    def process(self) -> int:
        """Return the process id on its node."""
        return os.getpid()

    def start(
        self, device: str, walk: str, starts: Sequence[WalkTerms], policy: Policy, seed: int, first: int, walkers: int
    ) -> Standing:
        """Create the session; see `Engine.start`."""
        engine, places = engine_of(device)
        self._session = engine.start(walk, starts, policy, seed=seed, first=first, walkers=walkers, places=places)
        return self._standing()

    def advance(self, goals: Vector, steps: int) -> Standing:
        self._session.advance(goals, steps, None)
        return self._standing()

    def rewind(self, walks: Vector) -> Standing:
        self._session.rewind(walks)
        return self._standing()

    def send(self, walks: Vector, starts: Sequence[WalkTerms], entries: Vector) -> Standing:
        self._session.send(walks, starts, entries)
        return self._standing()

    def take_arrays(self, arrays: Arrays) -> Standing:
        # Arrays that come by Ray are read-only views of shared memory.
        self._session.take_arrays({name: array.copy() for name, array in arrays.items()})
        return self._standing()

    def widen(self, schemes: Sequence[Scheme], goal: int, count: int, launches: int) -> list[Scheme]:
        """Return the schemes that walks from the members of a pool add to it; see `Widening`."""
        pool = DistinctPool(schemes)
        before = len(pool)
        if isinstance(self._session, Widening):
            self._session.widen(pool, goal, count, launches)
        return list(pool.schemes[before:])

    def chosen(self, walks: Vector) -> Vector:
        return self._session.chosen(walks)

    def terms(self, walks: Vector) -> list[WalkTerms]:
        return self._session.terms(walks)

    def steps(self, walks: Vector) -> Vector:
        return self._session.steps(walks)

    def to_arrays(self) -> Arrays:
        return self._session.to_arrays()

    def _standing(self) -> Standing:
        session = self._session
        return Standing(np.array(session.ranks), np.array(session.lowest), session.flips)

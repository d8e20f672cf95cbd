"""The actor on a worker of a cluster: a session of the CPU's or the GPU's engine, or turns of an improvement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...schemes_db import Scheme
from ..flipgraph.walkers import Walks
from ..runs.distinct import DistinctPool
from ..runs.engine import Session, engine_of
from ..runs.locked_folder import code_hash
from ..terms.packed import Vector


class Standing(NamedTuple):
    """State of the walks of a worker: `ranks`, `lowest` and `flips` of its session."""

    ranks: Vector
    lowest: Vector
    flips: int


class WorkerActor:
    """Driven from the head. Its session is created by `start`; its islands persist between turns."""

    _session: Session

    def __init__(self) -> None:
        self._islands: Any = None

    def code(self) -> str:
        """Return the hash of the code that runs here."""
        return code_hash()

    def start(self, device: str, of: Walks) -> Standing:
        """Create the session; see `Engine.start`."""
        engine, places = engine_of(device)
        self._session = engine.start(of, places)
        return self._standing()

    def change(self, method: str, *args: Any) -> Standing:
        """Call a method of the session that changes it; return its new state."""
        if method == "take_arrays":  # arrays that come by Ray are read-only views of shared memory
            args = ({name: array.copy() for name, array in args[0].items()},)
        getattr(self._session, method)(*args)
        return self._standing()

    def ask(self, method: str, *args: Any) -> Any:
        """Call a method of the session that does not change it; return its result."""
        return getattr(self._session, method)(*args)

    def widen(self, schemes: Sequence[Scheme], goal: int, count: int, launches: int) -> list[Scheme]:
        """Return the schemes that walks from the members of a pool add to it; see `Session.widen`."""
        pool = DistinctPool(schemes)
        before = len(pool)
        self._session.widen(pool, goal, count, launches)
        return list(pool.schemes[before:])

    def descend(self, *turn: Any) -> Iterator[tuple[str, str]]:
        """Run a turn of an improvement and yield reports during it; see `turn_worker.reports`."""
        from ..improve.islands import Islands  # imports a compiler
        from .turn_worker import reports

        self._islands = self._islands or Islands()
        yield from reports(self._islands, *turn)

    def _standing(self) -> Standing:
        session = self._session
        return Standing(np.array(session.ranks), np.array(session.lowest), session.flips)

"""Updates of the catalogue: certified improvements are stored at once; lifts run in background threads."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import count
from threading import RLock
from typing import Self

from ...schemes_db import Z2, Certificate, Ring, Scheme, Target, Z
from ...schemes_db.catalog import Catalog
from ...schemes_db.composition import best_composition, build, oriented, ranks_up_to
from ...schemes_db.recipes import in_order
from ...schemes_db.uneven import Shape
from ...verify import certify
from ..lifting.lift import lift
from ..lifting.ternary import after_flips
from .events import Kept, OnEvent

POOL = 64
"""Maximum number of schemes of the lowest rank of a format that are stored as starts."""

NEAR, FLIPS = 32, 300_000
"""Schemes that are lifted for a find, itself included, and the steps of the walk that leads to each other one."""

GRACE = 20.0
"""Seconds after the end of the search during which lifts may still start."""


def kept_ranks(catalog: Catalog, over: Ring) -> dict[Shape, int]:
    """Return the lowest ranks stored for full products over a ring or Z, by sides in increasing order."""
    return {shape: rank for shape, (rank, _) in catalog.best_ranks(over.name).items()}


class CatalogueView(ABC):
    """What a turn knows of the catalogue: `CatalogueUpdater`, or the `KnownSchemes` of a worker of a cluster.

    Attributes:
        over: the ring of the search.
        ranks: for each ring, the lowest stored rank by sides in increasing order.
    """

    over: Ring
    ranks: dict[str, dict[Shape, int]]

    def rank(self, ring: str, shape: Shape) -> int:
        """Return the lowest known rank over a ring, of a stored scheme or of the best composition of stored ones."""
        return int(ranks_up_to(max(shape), self.ranks[ring], ring)[shape])

    def note(self, scheme: Scheme) -> None:
        """Record the rank of a scheme for all rings that it holds over."""
        shape = in_order(scheme.target.shape)
        for name, ranks in self.ranks.items():
            if scheme.ring.name in (name, "Z"):
                ranks[shape] = min(scheme.rank, ranks.get(shape, scheme.rank))

    @abstractmethod
    def pool(self, shape: Shape, composed: bool = True) -> list[Scheme]:
        """Return schemes of the lowest known rank."""

    @abstractmethod
    def take(self, scheme: Scheme, certificate: Certificate) -> None:
        """Store or report a certified find."""


class BackgroundTasks:
    """Tasks on `jobs` threads beside a search; tasks left at its end get GRACE seconds more, see `in_time`."""

    def __init__(self, jobs: int) -> None:
        self._threads, self._end = ThreadPoolExecutor(jobs), float("inf")
        self._waiting: list[tuple[Future[None], Callable[..., None], tuple[object, ...]]] = []
        self._abandoned = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Wait for the tasks and raise their first error; after an error in the search no more lifts start.

        Abandoned tasks are not waited for: those that have started end on their threads.
        """
        if self._abandoned:
            return
        self._end = time.perf_counter() + (GRACE if kind is None else 0)
        self._threads.shutdown(wait=True)
        if kind is None:
            for future, *_ in self._waiting:
                future.result()

    def abandon(self) -> None:
        """Wait for no running task, and do those that have not begun here, without lifts: they store finds."""
        self._abandoned, self._end = True, 0.0
        self._threads.shutdown(wait=False, cancel_futures=True)
        for future, work, of in self._waiting:
            if future.cancelled():
                work(*of)

    @property
    def in_time(self) -> bool:
        """True if a lift may still start."""
        return time.perf_counter() < self._end

    def submit(self, work: Callable[..., None], *of: object) -> None:
        """Run a task on a thread."""
        self._waiting.append((self._threads.submit(work, *of), work, of))


class CatalogueUpdater(CatalogueView, BackgroundTasks):
    """The catalogue for a search for full products over one ring. Thread-safe.

    In a search over Z, finds modulo 2 are stored if they improve the catalogue modulo 2, and lifted on `jobs`
    threads.

    Args:
        on_start: called with every scheme that is stored as a start.

    Attributes:
        gained: ranks gained over the ring of the search.
    """

    def __init__(
        self,
        over: Ring,
        jobs: int,
        on_event: OnEvent = lambda event: None,
        on_start: Callable[[Scheme], None] = lambda scheme: None,
    ) -> None:
        BackgroundTasks.__init__(self, jobs)
        self._on_event, self._on_start = on_event, on_start
        self.over, self.gained = over, 0
        self._pools: dict[tuple[str, Shape], dict[str, Scheme]] = {}
        self._lock = RLock()
        self._to_lift: list[tuple[int, int, Scheme, Certificate]] = []
        self._order = count()
        self.look()

    def look(self) -> None:
        """Read the ranks again: other processes may have added to the catalogue."""
        with self._lock, Catalog.open() as catalog:
            self.ranks = {ring.name: kept_ranks(catalog, ring) for ring in (Z2, Z, self.over)}

    def take(self, scheme: Scheme, certificate: Certificate) -> None:
        """Store a certified find if it improves the catalogue, and schedule its lift if that is useful."""
        self.keep(scheme, certificate)
        if scheme.ring.characteristic == 2 and self._wanted(scheme):
            with self._lock:
                loss = scheme.rank - self.rank(self.over.name, in_order(scheme.target.shape))
                heappush(self._to_lift, (loss, next(self._order), scheme, certificate))
            self.submit(self._lift_next)

    def lift_stored(self, formats: Iterable[Target]) -> None:
        """Schedule the lifts of the user's schemes modulo 2 that would gain: a search may end before its lifts do."""
        with Catalog.open() as catalog:
            entries = [e for one in formats for e in catalog.entries(target=one.name, ring="Z2", origin="user")]
            known = [catalog.find(entry.digest) for entry in entries]
        for scheme, certificate in known:
            if scheme.rank < self.rank(self.over.name, in_order(scheme.target.shape)):
                self.take(scheme, certificate)

    def keep(self, scheme: Scheme, certificate: Certificate) -> bool:
        """Store and report a certified scheme if it improves the catalogue over its ring; return whether it does.

        A scheme of the lowest rank is also stored as a start.
        """
        ring, shape = scheme.ring.name, in_order(scheme.target.shape)
        with self._lock:
            before, aim = self.rank(ring, shape), self.rank(self.over.name, shape)
            if scheme.rank > before:
                return False
            if scheme.rank < before:
                self._pools.pop((ring, shape), None)
                self.note(scheme)
                self.gained += aim - self.rank(self.over.name, shape)
                with Catalog.open() as catalog:
                    catalog.add(scheme, certificate)
                self._on_event(Kept(scheme, before))
            if self.remember(scheme):
                self._on_start(scheme)
            return scheme.rank < before

    def remember(self, scheme: Scheme) -> bool:
        """Store a scheme of the lowest rank as a start; return False if it is known, or POOL are."""
        with self._lock:
            pool = self._pools.setdefault((scheme.ring.name, in_order(scheme.target.shape)), {})
            if len(pool) >= POOL or scheme.digest in pool:
                return False
            pool[scheme.digest] = scheme
            return True

    def _wanted(self, scheme: Scheme) -> bool:
        """Return whether a lift of the scheme would be useful: for the catalogue, or as another start."""
        shape = in_order(scheme.target.shape)
        with self._lock:
            lowest = self.rank(self.over.name, shape)
            more = scheme.rank == lowest and len(self._pools.get((self.over.name, shape), ())) < POOL
        return not self.over.characteristic and (scheme.rank < lowest or more)

    def _lift_next(self) -> None:
        """Lift the find that gains the most ranks, the earliest first: a lift takes up to a minute.

        If it has no lift and no other find waits, schemes that flips reach from it are lifted in its place.
        """
        with self._lock:
            _, _, scheme, certificate = heappop(self._to_lift)
        for seed in range(NEAR):
            if not self.in_time or not self._wanted(scheme):
                return
            found = lift(scheme, ring=self.over)
            if found.scheme is not None and found.certificate is not None:
                if self.keep(found.scheme, found.certificate):
                    with Catalog.open() as catalog:
                        catalog.add(scheme, certificate)
                return
            if self._to_lift or scheme.rank == self.rank(self.over.name, in_order(scheme.target.shape)):
                return
            scheme = after_flips(scheme, FLIPS, seed)
            certificate = certify(scheme)
            self.keep(scheme, certificate)

    def pool(self, shape: Shape, composed: bool = True) -> list[Scheme]:
        """Return the schemes of the lowest known rank of a format, or, if none is stored, the best composition over Z.

        Schemes modulo 2 of the same rank come last: schemes that walks reach from them may have a lift even if they
        have none. `composed=False` excludes compositions.
        """
        with self._lock:
            rings = list(dict.fromkeys(["Z", self.over.name, *([] if self.over.characteristic else ["Z2"])]))
            lowest = self.rank(self.over.name, shape)
            found = {
                digest: scheme
                for ring in rings
                for digest, scheme in self._pools.get((ring, shape), {}).items()
                if scheme.rank == lowest
            }
        with Catalog.open() as catalog:
            entries = [entry for entry in catalog.entries(target="x".join(map(str, shape))) if entry.ring in rings]
            for entry in sorted(entries, key=lambda entry: rings.index(entry.ring)):
                if entry.rank == lowest:
                    found.setdefault(entry.digest, catalog.find(entry.digest)[0])
            if not found and composed:
                part = best_composition(shape, catalog.best_ranks("Z"))
                found = {"": build(part, shape, lambda name: catalog.find(name)[0])}
        return [oriented(scheme, shape) for scheme in found.values()]

"""What improves the catalogue is kept the moment it is certified; lifts are tried beside the search."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import count
from threading import RLock
from types import TracebackType
from typing import Self

from ...schemes_db import Z2, Certificate, Ring, Scheme, Z
from ...schemes_db.catalog import Catalog
from ...schemes_db.composition import best_composition, build, oriented
from ..lifting.lift import lift
from .events import Kept, OnEvent, ignore
from .gaps import Shape

POOL = 64
"""Schemes of the lowest rank of a format that are remembered to start from."""

GRACE = 20.0
"""Seconds that lifts may take after the search is over."""


def kept_ranks(catalog: Catalog, over: Ring) -> dict[Shape, int]:
    """The lowest ranks kept for full products over a ring, sides in increasing order; what holds over Z holds mod 2."""
    kept: dict[Shape, int] = {}
    for entry in catalog.entries():
        name, _, structured = entry.target.partition(":")
        if structured or (entry.ring != over.name and entry.ring != "Z"):
            continue
        shape = in_order(tuple(int(side) for side in name.split("x")))
        kept[shape] = min(entry.rank, kept.get(shape, entry.rank))
    return kept


def in_order(shape: Sequence[int]) -> Shape:
    """The three sides in increasing order."""
    m, k, n = sorted(shape)
    return m, k, n


class BackgroundTasks:
    """Work on `jobs` threads beside a search; what is left at its end has a short time more, see `in_time`."""

    def __init__(self, jobs: int) -> None:
        self._threads, self._waiting, self._end = ThreadPoolExecutor(jobs), list[Future[None]](), float("inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the work, and raise what failed in it; after an error there is no time left for more."""
        self._end = time.perf_counter() + (GRACE if kind is None else 0)
        self._threads.shutdown(wait=True)
        if kind is None:
            for one in self._waiting:
                one.result()

    @property
    def in_time(self) -> bool:
        """Whether a lift may still begin."""
        return time.perf_counter() < self._end

    def submit(self, work: Callable[..., None], *of: object) -> None:
        """Have it done by a thread."""
        self._waiting.append(self._threads.submit(work, *of))


class CatalogueUpdater(BackgroundTasks):
    """The catalogue as a search for full products over one ring sees it.

    Over Z what is found modulo 2 is kept where it improves the catalogue there, and lifted on `jobs`
    threads. Several threads may hand finds over at once.

    Args:
        on_start: called with every scheme that is remembered to start from.

    Attributes:
        over: the ring that the search is for.
        ranks: over each ring, the lowest rank at hand by sides in increasing order.
        gained: ranks gained over the ring of the search.
    """

    def __init__(
        self,
        over: Ring,
        jobs: int,
        on_event: OnEvent = ignore,
        on_start: Callable[[Scheme], None] = lambda scheme: None,
    ) -> None:
        super().__init__(jobs)
        self._on_event, self._on_start = on_event, on_start
        self.over, self.gained = over, 0
        self.ranks: dict[str, dict[Shape, int]] = {}
        self._pools: dict[tuple[str, Shape], dict[str, Scheme]] = {}
        self._lock = RLock()
        self._to_lift: list[tuple[int, int, Scheme, Certificate]] = []
        self._order = count()
        self.look()

    def look(self) -> None:
        """Read the ranks anew: other processes may have added to the catalogue."""
        with self._lock, Catalog.open() as catalog:
            self.ranks = {ring.name: kept_ranks(catalog, ring) for ring in (Z2, Z, self.over)}

    def rank(self, ring: str, shape: Shape) -> int:
        """The lowest rank at hand over a ring: of a kept scheme, or of the best composition of such."""
        parts = {size: (rank, "") for size, rank in self.ranks[ring].items()}
        return best_composition(shape, parts).rank

    def take(self, scheme: Scheme, certificate: Certificate) -> None:
        """Keep a certified find where it improves the catalogue, and have it lifted where that may."""
        self.keep(scheme, certificate)
        if scheme.ring.characteristic == 2 and self._wanted(scheme):
            with self._lock:
                heappush(
                    self._to_lift,
                    (
                        scheme.rank - self.rank(self.over.name, in_order(scheme.target.shape)),
                        next(self._order),
                        scheme,
                        certificate,
                    ),
                )
            self.submit(self._lift_next)

    def keep(self, scheme: Scheme, certificate: Certificate) -> bool:
        """Keep a certified scheme and tell of it where it improves the catalogue over its ring; whether it does.

        It is remembered where it is as good as the best.
        """
        ring, shape = scheme.ring.name, in_order(scheme.target.shape)
        with self._lock:
            before, aim = self.rank(ring, shape), self.rank(self.over.name, shape)
            if scheme.rank > before:
                return False
            if scheme.rank < before:
                self._pools.pop((ring, shape), None)
                for name, ranks in self.ranks.items():
                    if ring in (name, "Z"):
                        ranks[shape] = min(scheme.rank, ranks.get(shape, scheme.rank))
                self.gained += aim - self.rank(self.over.name, shape)
                with Catalog.open() as catalog:
                    catalog.add(scheme, certificate)
                self._on_event(Kept(scheme, before))
            if self.remember(scheme):
                self._on_start(scheme)
            return scheme.rank < before

    def remember(self, scheme: Scheme) -> bool:
        """Start from a scheme of the lowest rank, too; False where enough are known, or this one is."""
        with self._lock:
            pool = self._pools.setdefault((scheme.ring.name, in_order(scheme.target.shape)), {})
            if len(pool) >= POOL or scheme.digest in pool:
                return False
            pool[scheme.digest] = scheme
            return True

    def _wanted(self, scheme: Scheme) -> bool:
        """Whether its lift is of use: to the catalogue, or as one more start."""
        shape = in_order(scheme.target.shape)
        with self._lock:
            lowest = self.rank(self.over.name, shape)
            more = scheme.rank == lowest and len(self._pools.get((self.over.name, shape), ())) < POOL
        return not self.over.characteristic and (scheme.rank < lowest or more)

    def _lift_next(self) -> None:
        """Lift the find that gains the most ranks, the earliest of such: a lift takes up to a minute."""
        with self._lock:
            _, _, scheme, certificate = heappop(self._to_lift)
        if not self.in_time or not self._wanted(scheme):
            return
        lifted = lift(scheme, ring=self.over)
        if (
            lifted.scheme is not None
            and lifted.certificate is not None
            and self.keep(lifted.scheme, lifted.certificate)
        ):
            with Catalog.open() as catalog:
                catalog.add(scheme, certificate)

    def pool(self, shape: Shape, composed: bool = True) -> list[Scheme]:
        """Schemes of the lowest rank at hand, the sides in order; if none is kept, the best composition over Z.

        Last come schemes modulo 2 of the same rank: what walks make of them may have a lift where they have none.
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
                part = best_composition(shape, catalog.best_ranks())
                found = {"": build(part, shape, lambda name: catalog.find(name)[0])}
        return [oriented(scheme, shape) for scheme in found.values()]

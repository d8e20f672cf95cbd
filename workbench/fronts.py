"""`lcma search --improve` on structured targets: directed walks, and finds kept where they better a front."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING

import click

from ..errors import PlanError, TargetError
from ..schemes_db import Z2, Provenance, Scheme, Target, Z
from ..schemes_db.algebra import naive
from ..schemes_db.catalog import Catalog
from ..schemes_db.costs import additions, full_and_half
from ..schemes_db.symmetry import derive
from ..search import lift
from ..verify import certify
from ..version import __version__
from .improving import LONGEST, SHARE
from .keeping import Beside
from .progress import Progress

if TYPE_CHECKING:
    from ..search.improve.directed import DirectedWalk

LIFTS = 40
"""Finds of a point that are certified and lifted at most; over Z the sparsest of them is kept."""


class FrontKeeper(Beside):
    """What a directed walk finds, certified at once and kept where no scheme of the catalogue is as good.

    Over Z finds are lifted on `jobs` threads. Of each point (R, F) the first scheme is kept, and every
    one over Z with fewer additions than those before.
    """

    def __init__(self, targets: Sequence[Target], ring: str, jobs: int) -> None:
        super().__init__(jobs)
        self.gained = 0
        self._over_z = ring != Z2.name
        self._best: dict[tuple[str, str], dict[tuple[int, int], int]] = {}
        self._lifts: dict[tuple[str, int, int], int] = {}
        self._lock = Lock()
        self.known: dict[str, list[Scheme]] = {}
        with Catalog.open() as catalog:
            kept = [catalog.find(entry.digest)[0] for entry in catalog.entries() if ":" in entry.target]
        for target in targets:
            self.known[target.name] = list(_derived(kept, target))
            for scheme in (*self.known[target.name], naive(target)):
                self._betters(scheme)
        self._kept = kept

    def starts(self, target: Target) -> list[Scheme]:
        """What is known of a target modulo 2; the products of its blocks, if nothing is."""
        found = [scheme.over_z2() for scheme in (*self.known[target.name], naive(target))]
        known = [scheme for scheme in found if scheme is not None]
        return known[:-1] or known

    def carried(self, target: Target) -> list[Scheme]:
        """Schemes of targets smaller by a row of blocks with a naive border, modulo 2."""
        from ..search.format_moves.corners import bordered

        found = []
        for corner in _corners(target):
            for scheme in _derived(self._kept, corner):
                if (flat := scheme.over_z2()) is not None:
                    found.append(bordered(flat, target))
        return found

    def take(self, scheme: Scheme) -> None:
        """Certify a find, keep it and lift it, on a thread."""
        self.submit(self._taken, scheme)

    def _taken(self, scheme: Scheme) -> None:
        key = (scheme.target.name, scheme.rank, full_and_half(scheme)[0])
        with self._lock:
            tried = self._lifts[key] = self._lifts.get(key, 0) + 1
        if tried > LIFTS:
            return
        self._keep(scheme)
        if self._over_z and self.in_time:
            lifted = lift(scheme)
            if lifted.scheme is not None:
                self._keep(lifted.scheme)

    def _keep(self, scheme: Scheme) -> None:
        certificate = certify(scheme)
        with self._lock:
            if not self._betters(scheme):
                return
            self.gained += 1
            with Catalog.open() as catalog:
                catalog.add(scheme, certificate)
        full, half = full_and_half(scheme)
        cost = f", {additions(scheme)} additions" if self._counts(scheme) else ""
        click.echo(f"found {scheme!r} {scheme.digest[:12]}, {full} + {half}{cost}, certified, kept")

    def _betters(self, scheme: Scheme) -> bool:
        """Whether none over its ring is as good in rank, full products and, over Z, additions; then it is noted."""
        rank, full = point = scheme.rank, full_and_half(scheme)[0]
        best = self._best.setdefault((scheme.target.name, scheme.ring.name), {})
        cost = additions(scheme) if self._counts(scheme) else 0
        if any(known[0] <= rank and known[1] <= full and least <= cost for known, least in best.items()):
            return False
        best[point] = cost
        if self._counts(scheme):  # what holds over Z holds modulo 2
            self._best.setdefault((scheme.target.name, Z2.name), {})[point] = 0
        return True

    @staticmethod
    def _counts(scheme: Scheme) -> bool:
        """Whether its additions matter: modulo 2 every lift makes others of them."""
        return not scheme.ring.characteristic


def improve_fronts(
    targets: Sequence[Target], ring: str, seconds: float, seed: int, jobs: int, dry_run: bool, device: str, command: str
) -> int:
    """Directed walks on structured targets, in turns; the exit code: 1 where nothing was kept.

    Raises:
        PlanError: the device is not here, or the ring is neither Z nor Z2.
        TargetError: a target is given term by term.
        KeyboardInterrupt: the run was interrupted, after everything is kept.
    """
    if ring not in (Z.name, Z2.name):
        raise PlanError(f"directed walks find schemes over Z2 and Z, not over {ring}")
    for target in targets:
        if not target.is_product:
            raise TargetError(f"--improve works on products of matrices, not {target}")
    with FrontKeeper(targets, ring, jobs) as keeper:
        walks = _walks(keeper, targets, seed, device, command)
        if dry_run:
            for walk in walks:
                click.echo(f"{walk.target}: {walk.front}")
            return 0
        begin, turns = time.perf_counter(), 0
        with Progress("compiling the walk") as progress:
            while (left := seconds - (time.perf_counter() - begin)) > 1 or not turns:
                walk = walks[turns % len(walks)]
                walk.turn(turns // len(walks), min(LONGEST, max(1.0, SHARE * seconds), left), say=progress.update)
                turns += 1
    for walk in walks:
        click.echo(f"{walk.target}: {walk.flips:.2e} flips; {walk.front}")
    click.echo(f"{keeper.gained} schemes kept")
    return 0 if keeper.gained else 1


def _walks(keeper: FrontKeeper, targets: Sequence[Target], seed: int, device: str, command: str) -> list[DirectedWalk]:
    from ..search.improve.directed import DirectedWalk, Front  # imports a compiler

    source = Provenance(kind="search", command=command, seed=seed, version=__version__, relation="directed flip walk")
    return [
        DirectedWalk(
            target,
            Front(keeper.starts(target)),
            carried=keeper.carried(target),
            seed=seed,
            device=device,
            provenance=source,
            on_find=keeper.take,
        )
        for target in targets
    ]


def _derived(schemes: Sequence[Scheme], target: Target) -> Iterator[Scheme]:
    """Those of the target itself, and those that rotation, transposition and reversal bring to it."""
    orbit = set(target.orbit())
    for scheme in schemes:
        if scheme.target in orbit and scheme.target.block_recursive:
            yield derive(scheme, target)


def _corners(target: Target) -> Iterator[Target]:
    """The targets of the first blocks, one less along some of the three axes."""
    for cut in itertools.product((0, 1), repeat=3):
        m, k, n = (size - less for size, less in zip(target.shape, cut, strict=True))
        if any(cut) and min(m, k, n) > 0:
            a, b, c = (
                tuple(row[:cols] for row in grid[:rows])
                for grid, rows, cols in ((target.a, m, k), (target.b, k, n), (target.c, m, n))
            )
            yield Target(m, k, n, a, b, c, target.block_recursive, target.shared)

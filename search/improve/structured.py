"""Directed walks on structured targets: finds are stored if they improve a front of the catalogue."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from threading import Lock

from ...errors import PlanError, TargetError
from ...schemes_db import Z2, Provenance, Scheme, Target, Z
from ...schemes_db.algebra import naive
from ...schemes_db.catalog import Catalog
from ...schemes_db.costs import additions, full_and_half
from ...schemes_db.symmetry import derive
from ...verify import certify
from ...version import __version__
from ..format_moves.corners import bordered
from ..lifting.lift import lift
from .catalogue import BackgroundTasks
from .events import Control, Kept, OnEvent
from .neighbours import modulo_2

LIFTS = 40
"""Maximum number of finds of a point that are certified and lifted; over Z, those with fewer additions are stored."""


class FrontUpdater(BackgroundTasks):
    """Updates of the catalogue by finds of directed walks, certified and stored if no stored scheme is as good.

    In a search over Z finds are lifted on `jobs` threads. Of each point (R, F) the first scheme is stored, and
    every later one over Z with fewer additions.
    """

    def __init__(self, targets: Sequence[Target], ring: str, jobs: int, on_event: OnEvent = lambda event: None) -> None:
        if ring not in (Z.name, Z2.name):
            raise PlanError(f"directed walks find schemes over Z2 and Z, not over {ring}")
        super().__init__(jobs)
        self._on_event = on_event
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
        """Return the known schemes of a target modulo 2; the naive scheme if there are none."""
        known = modulo_2([*self.known[target.name], naive(target)])
        return known[:-1] or known

    def bordered_starts(self, target: Target) -> list[Scheme]:
        """Return schemes of targets smaller by one block along some axes, with a naive border, modulo 2."""
        smaller = [scheme for corner in _corners(target) for scheme in _derived(self._kept, corner)]
        return [bordered(scheme, target) for scheme in modulo_2(smaller)]

    def take(self, scheme: Scheme) -> None:
        """Certify, store and lift a find on a thread."""
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
        self._on_event(Kept(scheme, full=full_and_half(scheme)[0]))

    def _betters(self, scheme: Scheme) -> bool:
        """Record a scheme if none over its ring is as good in rank, full products and, over Z, additions.

        Returns whether it was recorded.
        """
        rank, full = point = scheme.rank, full_and_half(scheme)[0]
        best = self._best.setdefault((scheme.target.name, scheme.ring.name), {})
        over_z = not scheme.ring.characteristic  # modulo 2 additions do not count, as they change with the lift
        cost = additions(scheme) if over_z else 0
        if any(known[0] <= rank and known[1] <= full and least <= cost for known, least in best.items()):
            return False
        best[point] = cost
        if over_z:  # what holds over Z holds modulo 2
            self._best.setdefault((scheme.target.name, Z2.name), {})[point] = 0
        return True


class StructuredImprovement:
    """Directed walks on structured targets, in turns.

    Raises:
        PlanError: the device is not here, or the ring is neither Z nor Z2.
        TargetError: a target is given term by term.
    """

    def __init__(self, updater: FrontUpdater, targets: Sequence[Target], control: Control) -> None:
        from .directed import DirectedWalk, Front  # imports a compiler

        config = control.config
        for target in targets:
            if not target.is_product:
                raise TargetError(f"directed walks are on products of matrices, not on {target}")
        source = Provenance(
            kind="search", command=config.command, seed=config.seed, version=__version__, relation="directed flip walk"
        )
        self.walks = [
            DirectedWalk(
                target,
                Front(updater.starts(target)),
                bordered=updater.bordered_starts(target),
                seed=config.seed,
                device="cpu" if config.device == "twin" else config.device,
                provenance=source,
                on_find=updater.take,
                on_event=control.on_event,
                stop=control.stop,
            )
            for target in targets
        ]
        self.names = {target.name for target in targets}
        self.turns: Counter[str] = Counter()
        self.exhausted: tuple[str, ...] = ()
        self.updater = updater

    def turn(self, seconds: float, longest: float) -> bool:
        """Walk on the target with the fewest turns for `seconds`, whatever `longest` is; return True."""
        walk = min(self.walks, key=lambda one: self.turns[one.target.name])
        walk.turn(self.turns[walk.target.name], seconds)
        self.turns[walk.target.name] += 1
        return True


def _derived(schemes: Sequence[Scheme], target: Target) -> Iterator[Scheme]:
    """Yield the schemes of the target, and those that rotation, transposition and reversal map to it."""
    orbit = set(target.orbit())
    for scheme in schemes:
        if scheme.target in orbit and scheme.target.block_recursive:
            yield derive(scheme, target)


def _corners(target: Target) -> Iterator[Target]:
    """Yield the targets of the leading blocks, with one block less along some of the three axes."""
    for cut in itertools.product((0, 1), repeat=3):
        m, k, n = (size - less for size, less in zip(target.shape, cut, strict=True))
        if any(cut) and min(m, k, n) > 0:
            a, b, c = (
                tuple(row[:cols] for row in grid[:rows])
                for grid, rows, cols in ((target.a, m, k), (target.b, k, n), (target.c, m, n))
            )
            yield Target(m, k, n, a, b, c, target.block_recursive, target.shared)

"""Searches where the catalogue is behind the best ranks known, one after the other."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from ...errors import TargetError
from ...schemes_db import Ring, Scheme, Target, Z, parse_ring
from ...schemes_db.catalog import Catalog
from ...verify import certify
from ..cluster.connection import Cluster
from ..runs.config import RunConfig
from ..runs.keep import keep_finds
from ..runs.run import carry_out
from .catalogue import CatalogueUpdater, in_order
from .cluster_turns import ClusterTurns, Turns
from .events import OnEvent, TurnBegun, Walking
from .gaps import Gap, formats_up_to, gaps
from .starts import best_below

LONGEST = 60.0
"""Seconds of a turn at most; then the format of most promise has the next."""

GPU_BLOCKS = 64
"""Blocks of a factor that a walk on a GPU holds."""


def formats_of(limits: Sequence[Target], up_to: bool) -> list[Target]:
    """The formats to improve, sides in increasing order: these, or all `up_to` one of them.

    Raises:
        TargetError: one is no full product.
    """
    for limit in limits:
        if not limit.is_general:
            raise TargetError(f"{limit} is no full product: formats are")
    shapes = [in_order(limit.shape) for limit in limits]
    if not up_to:
        return [Target.general(*shape) for shape in dict.fromkeys(shapes)]
    return list(dict.fromkeys(target for shape in shapes for target in formats_up_to(shape)))


class GeneralImprovement:
    """Turns on full products, each where the most is promised: ranks above the best known, by the work of the format.

    Args:
        cluster: where workers take turns, each its own, in place of this process.
        stack: ends the workers.

    Attributes:
        turns: how many each format has had.

    Raises:
        PlanError: the device is not known, or not here, or has no walks over the ring.
    """

    def __init__(
        self,
        updater: CatalogueUpdater,
        formats: Sequence[Target],
        ring: str,
        *,
        seed: int,
        jobs: int,
        device: str,
        command: str,
        on_event: OnEvent,
        stop: Callable[[], bool],
        cluster: Cluster | None = None,
        stack: ExitStack,
    ) -> None:
        self._updater, self._ring, self._seed, self._jobs = updater, ring, seed, jobs
        self._on_event, self._stop = on_event, stop
        self._over: Ring = Z if ring == "ZT" else parse_ring(ring)
        on_gpu = device != "cpu"
        self.formats = [one for one in formats if not on_gpu or one.shape[1] * one.shape[2] <= GPU_BLOCKS]
        self.turns: Counter[str] = Counter()
        self._at_once = 1
        self._take_turns: Callable[[Turns, float], None]
        if cluster is not None:
            on_cluster = ClusterTurns(
                stack,
                updater,
                cluster,
                self._configured,
                ring=ring,
                seed=seed,
                device=device,
                command=command,
                on_event=on_event,
                stop=stop,
            )
            self._take_turns, self._at_once = on_cluster.take, len(on_cluster)
        else:
            self._take_turns = self._descents(device, command) if on_gpu else self._run

    def gaps(self) -> list[Gap]:
        """The formats where ranks are to be gained, the most promising first."""
        found = gaps(self._updater.ranks[self._over.name], self._over, self.formats)
        return sorted(found, key=lambda gap: -gap.priority(self.turns[gap.target.name]))

    def turn(self, seconds: float) -> bool:
        """Work on the format of most promise for so long, on a cluster on one a worker; False where no gap is left."""
        found = self.gaps()
        if not found:
            return False
        chosen: list[tuple[Gap, int]] = []
        taken = self.turns.copy()
        for _ in range(self._at_once):
            gap = max(found, key=lambda gap: gap.priority(taken[gap.target.name]))
            chosen.append((gap, taken[gap.target.name]))
            taken[gap.target.name] += 1
        self._take_turns(chosen, seconds)
        self.turns = taken
        self._updater.look()
        return True

    def _descents(self, device: str, command: str) -> Callable[[Turns, float], None]:
        """Turns on GPUs."""
        from .descents import Descents  # imports a compiler

        place = "cpu" if device == "twin" else device
        descents = Descents(self._updater, self._ring, self._seed, place, command)

        def take(turns: Turns, seconds: float) -> None:
            ((gap, tried),) = turns
            descents.turn(gap, tried, seconds, lambda text: self._on_event(Walking(gap.target.name, text)), self._stop)

        return take

    def _configured(self, gap: Gap, tried: int) -> RunConfig:
        """The search of a turn, with the command that repeats it."""
        with Catalog.open() as catalog:
            configs = list(_ways(gap, self._ring, self._over, catalog, self._seed + tried))
        return configs[tried % len(configs)]

    def _run(self, turns: Turns, seconds: float) -> None:
        """A turn on this processor."""
        ((gap, tried),) = turns
        config = self._configured(gap, tried)
        self._on_event(TurnBegun(gap.target.name, config.command))
        result = carry_out(
            config.limited(None, seconds, 1),
            jobs=self._jobs,
            stop=self._stop,
            on_event=lambda standing: self._on_event(Walking(gap.target.name, standing.line)),
        )
        keep_finds(result.lineage)
        for found in result.finds:
            # What it was lifted from comes first: it may improve the catalogue over Z2 more than its lift over Z.
            self._updater.keep(found.origin, found.origin_certificate)
            self._updater.keep(found.scheme, found.certificate)
        for lost in result.unlifted:
            self._updater.keep(lost.origin, certify(lost.origin))


def _ways(gap: Gap, ring: str, over: Ring, catalog: Catalog, seed: int) -> Iterator[RunConfig]:
    """Runs for one rank less: by symmetry, from below, from what is kept of the format itself, from naive."""
    m, k, n = gap.target.shape
    if m == k == n and ring != "ZT":
        yield _config(gap, ring, seed, walk="flip-c3")
    entries = catalog.entries(target=gap.target.name, max_rank=gap.rank)
    kept = [one for one in entries if one.ring in (over.name, "Z") and one.rank == gap.rank]
    below = best_below(catalog, gap.target, over)
    for start in (below, catalog.find(kept[0].digest)[0] if kept else None):
        if start is not None and (ring != "ZT" or start.ternary):
            yield _config(gap, ring, seed, start=start)
    yield _config(gap, ring, seed)


def _config(gap: Gap, ring: str, seed: int, walk: str = "", start: Scheme | None = None) -> RunConfig:
    words = ["lcma", "search", gap.target.name, "--rank", str(gap.rank - 1), "--ring", ring, "--seed", str(seed)]
    words += ["--walk", walk] if walk else []
    words += ["--start", start.digest[:16]] if start else []
    return RunConfig(
        gap.target.name,
        gap.rank - 1,
        ring,
        seed,
        seconds=LONGEST,
        walk=walk,
        command=shlex.join([*words, "--time", f"{LONGEST:g}s"]),
        start=start,
    )

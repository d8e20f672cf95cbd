"""Searches where the catalogue is behind the best ranks known, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ...errors import PlanError, TargetError
from ...schemes_db import Ring, Target, Z, parse_ring
from ...schemes_db.catalog import Catalog
from ...schemes_db.ranks import best_known
from ...schemes_db.run_record import RunRecord
from ...verify import certify
from ..cluster.connection import Cluster
from ..runs.keep import keep_finds
from ..runs.run import carry_out
from .catalogue import CatalogueUpdater, in_order
from .cluster_turns import ClusterTurns, Turns
from .cpu_turns import Search, next_search
from .events import Exhausted, OnEvent, TurnBegun, Walking
from .gaps import Gap, formats_up_to, gaps
from .history import History

GPU_BLOCKS = 64
"""Blocks of a factor that a walk on a GPU holds."""


def formats_of(limits: Sequence[Target], up_to: bool) -> list[Target]:
    """The formats to improve, sides in increasing order: these, or all `up_to` one of them.

    Raises:
        TargetError: one is no full product, or not in the table of best known ranks.
    """
    for limit in limits:
        if not limit.is_general:
            raise TargetError(f"{limit} is no full product: formats are")
    shapes = [in_order(limit.shape) for limit in limits]
    if not up_to:
        named = [Target.general(*shape) for shape in dict.fromkeys(shapes)]
        if unknown := [one for one in named if best_known(one, Z) is None]:
            raise TargetError(
                f"the table of best known ranks has no {unknown[0]}, so no gap is known: lcma search takes a rank"
            )
        return named
    return list(dict.fromkeys(target for shape in shapes for target in formats_up_to(shape)))


class GeneralImprovement:
    """Turns on full products, each where the most is promised: ranks above the best known, by the work of the format.

    Args:
        cluster: where workers take turns, each its own, in place of this process.
        stack: ends the workers.

        retry: take dead ends of earlier turns for open again.

    Attributes:
        turns: how many each format has had.
        exhausted: formats of which every route is a dead end, with the rank where that holds.

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
        retry: bool = False,
    ) -> None:
        self._updater, self._ring, self._seed, self._jobs = updater, ring, seed, jobs
        self._on_event, self._stop = on_event, stop
        self._over: Ring = Z if ring == "ZT" else parse_ring(ring)
        on_gpu = device != "cpu"
        self._kind = "cuda" if device.startswith("cuda") else "cpu"
        with Catalog.open() as catalog:
            known = [] if retry else catalog.runs()
        self._history = History(run for run in known if run.route and self._mine(run))
        if on_gpu and formats and all(one.shape[1] * one.shape[2] > GPU_BLOCKS for one in formats):
            raise PlanError(f"{formats[0]} has a factor of more than {GPU_BLOCKS} blocks: no GPU walk holds it")
        self.formats = [one for one in formats if not on_gpu or one.shape[1] * one.shape[2] <= GPU_BLOCKS]
        self.turns: Counter[str] = Counter()
        self.exhausted: dict[str, int] = {}
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
                history=self._history,
                on_turn=self._record,
            )
            self._take_turns, self._at_once = on_cluster.take, len(on_cluster)
        else:
            self._take_turns = self._descents(device, command) if on_gpu else self._run

    def _mine(self, run: RunRecord) -> bool:
        return (run.ring, run.device) == (self._over.name, self._kind)

    def gaps(self) -> list[Gap]:
        """The formats where ranks are to be gained, those of the most expected gain first."""
        found = gaps(self._updater.ranks[self._over.name], self._over, self.formats)
        open_ = [gap for gap in found if self.exhausted.get(gap.target.name) != gap.rank]
        return sorted(open_, key=lambda gap: -self._history.worth(gap))

    def turn(self, seconds: float) -> bool:
        """Work on the format of most promise for so long, on a cluster on one a worker; False where none is left."""
        found = self.gaps()
        if not found:
            return False
        chosen: list[tuple[Gap, int]] = []
        taken = self.turns.copy()
        for _ in range(self._at_once):
            # Those that begin together do not know of each other what they gain.
            gap = max(
                found,
                key=lambda gap: self._history.worth(gap) / (1 + taken[gap.target.name] - self.turns[gap.target.name]),
            )
            chosen.append((gap, taken[gap.target.name]))
            taken[gap.target.name] += 1
        self._take_turns(chosen, seconds)
        self.turns = taken
        self._updater.look()
        return True

    def _record(self, gap: Gap, turn: RunRecord | None) -> None:
        """Keep what a turn did; None: every route to the format is a dead end."""
        if turn is None:
            self.exhausted[gap.target.name] = gap.rank
            self._on_event(Exhausted(gap.target.name, gap.rank, gap.known))
            return
        self._history.add(turn)
        with Catalog.open() as catalog:
            if catalog.path is not None:
                catalog.record_run(turn)

    def _descents(self, device: str, command: str) -> Callable[[Turns, float], None]:
        """Turns on GPUs."""
        from .descents import Descents  # imports a compiler

        place = "cpu" if device == "twin" else device
        descents = Descents(self._updater, self._ring, self._seed, place, command)

        def take(turns: Turns, seconds: float) -> None:
            ((gap, tried),) = turns
            name = gap.target.name
            done = descents.turn(
                gap,
                tried,
                seconds,
                lambda text: self._on_event(Walking(name, text)),
                self._stop,
                self._history.of(name),
            )
            self._record(gap, done)

        return take

    def _configured(self, gap: Gap, tried: int) -> Search | None:
        with Catalog.open() as catalog:
            return next_search(gap, self._ring, self._over, catalog, self._history, self._seed + tried)

    def _run(self, turns: Turns, seconds: float) -> None:
        """A turn on this processor."""
        ((gap, tried),) = turns
        search = self._configured(gap, tried)
        if search is None:
            self._record(gap, None)
            return
        self._on_event(TurnBegun(gap.target.name, search.config.command))
        result = carry_out(
            search.config.limited(None, seconds, 1),
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
        done = search.record(
            gap,
            rounds=result.rounds,
            flips=result.flips,
            seconds=result.seconds,
            finds=len(result.finds),
            ranks=[*result.ranks, *(one.scheme.rank for one in result.finds)],
        )
        self._record(gap, done)

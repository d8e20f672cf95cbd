"""Improvement of full products: searches in the formats where the catalogue's rank is above the best known one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack

from ...errors import PlanError, TargetError
from ...schemes_db import Target, Z
from ...schemes_db.catalog import Catalog
from ...schemes_db.formats.strict_json import loads
from ...schemes_db.ranks import best_known, board
from ...schemes_db.recipes import in_order
from ...schemes_db.run_record import RunRecord
from ..cluster.turn_worker import Report
from ..cluster.workers import pool_of, release
from ..runs.result import Find, Record
from ..terms.words import WORD_BITS
from ..triples.annealer import has_triples
from .catalogue import CatalogueUpdater
from .events import Control, Exhausted, TurnBegun, Walking
from .gaps import Gap, formats_up_to, gaps, is_walkable
from .history import History
from .neighbours import neighbourhood


def formats_of(limits: Sequence[Target], up_to: bool, closure: bool = False) -> list[Target]:
    """Return the formats to improve, sides in increasing order: these, or with `up_to` all that fit into one of them,
    or with `closure` all of the table of best known ranks.

    Raises:
        TargetError: one is no full product, or, without `up_to`, not in the table of best known ranks.
    """
    for limit in limits:
        if not limit.is_general:
            raise TargetError(f"{limit} is no full product: formats are")
    if closure:
        return [Target.general(*shape) for shape in board()]
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
    """Turns on full products, each on the format with the highest expected gain (`History.worth`).

    Args:
        control: with a cluster, its workers run one turn each, in place of this process, each on a device of its own.
        stack: closes the workers.

    Attributes:
        turns: number of turns of each format.
        exhausted: formats of which every route is a dead end, with the rank for which that holds.

    Raises:
        PlanError: the device is unknown or missing, or has no walks over the ring; or the cluster is not found, or some
            of its nodes run other code.
    """

    def __init__(
        self, updater: CatalogueUpdater, formats: Sequence[Target], control: Control, stack: ExitStack
    ) -> None:
        config, self._on_event, self._stop = control.config, control.on_event, control.stop
        ring, cluster = config.ring, config.cluster
        self.updater, self._config = updater, config
        mine = updater.over.name, "cuda" if config.device.startswith("cuda") else "cpu"
        with Catalog.open() as catalog:
            known = [] if config.retry else catalog.runs()
        self._history = History(run for run in known if run.route and (run.ring, run.device) == mine)
        ternary = ring == "ZT"
        self.formats = [one for one in formats if is_walkable(one, ternary) or (not ternary and has_triples(one))]
        self.names = {one.name for one in self.formats}
        if formats and not self.formats:
            raise PlanError(f"{formats[0]} has a factor of more than {WORD_BITS} blocks: no walk over {ring} holds it")
        if ring in ("Z", "Q"):
            updater.lift_stored(self.formats)
        self.turns: Counter[str] = Counter()
        self.exhausted: dict[str, int] = {}
        self._pool = None
        if cluster is not None:
            cluster.connect()
            release()  # workers of earlier searches, and their memory
            self._pool = pool_of(cluster, gpus=config.device == "cuda")
            stack.callback(release)
        else:
            from .descents import Descents  # imports a compiler

            self._descents = Descents(updater, control)

    def gaps(self) -> list[Gap]:
        """Return the formats with a gap, in decreasing order of the expected gain, without exhausted ones."""
        found = gaps(self.updater.ranks[self.updater.over.name], self.updater.over, self.formats)
        open_ = [gap for gap in found if self.exhausted.get(gap.target.name) != gap.rank]
        return sorted(open_, key=lambda gap: -self._history.worth(gap))

    def turn(self, seconds: float, longest: float) -> bool:
        """Search the format of the highest expected gain (on a cluster: one a worker); return False if none is left.

        In this process a search whose ranks still fall after `seconds` goes on, to `longest` seconds; on a cluster the
        other workers would wait for it.
        """
        found = self.gaps()
        if not found:
            return False
        chosen: list[tuple[Gap, int]] = []
        taken = self.turns.copy()
        for _ in range(1 if self._pool is None else len(self._pool.workers)):
            # The gains of turns that start together are not known yet, so repeated formats are worth less.
            gap = max(
                found,
                key=lambda gap: self._history.worth(gap) / (1 + taken[gap.target.name] - self.turns[gap.target.name]),
            )
            chosen.append((gap, taken[gap.target.name]))
            taken[gap.target.name] += 1
        if self._pool is None:
            ((gap, tried),) = chosen
            self._record(gap, self._descents.turn(gap, tried, seconds, self._history, longest))
        else:
            self._pool.run_turns(
                [self._task(gap, tried, seconds) for gap, tried in chosen],
                seconds,
                lambda place, report: self._reported(chosen[place][0], report),
                self._stop,
            )
        self.turns = taken
        self.updater.look()
        return True

    def _record(self, gap: Gap, turn: RunRecord | None) -> None:
        """Record a turn; None: every route to the format is a dead end."""
        if turn is None:
            self.exhausted[gap.target.name] = gap.rank
            self._on_event(Exhausted(gap.target.name, gap.rank, gap.known))
            return
        self._history.turns.append(turn)
        with Catalog.open() as catalog:
            if catalog.path is not None:
                catalog.record_run(turn)

    def _task(self, gap: Gap, tried: int, seconds: float) -> tuple[object, ...]:
        """Return the arguments of a turn on a worker, which starts from the schemes that this process sends."""
        pools = {shape: self.updater.pool(shape) for shape in neighbourhood(in_order(gap.target.shape))}
        self._on_event(TurnBegun(gap.target.name, f"{gap.target}: turn {tried + 1} on a worker"))
        return gap, tried, seconds, self._config, self.updater.ranks, pools, self._history.here(gap)

    def _reported(self, gap: Gap, report: Report) -> None:
        """Take up the report of a worker: text, and every scheme in it is certified again before it is stored."""
        kind, text = report
        if kind == "stands":
            self._on_event(Walking(gap.target.name, text))
            return
        if kind == "turn":
            values = loads(text)
            self._record(gap, None if values is None else RunRecord(**values))
            return
        found = Record.from_line(text).found
        if isinstance(found, Find):
            self.updater.take(found.scheme, found.certificate)

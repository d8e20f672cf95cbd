"""Turns of an improvement on the workers of a cluster; only the head writes the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np

from ...schemes_db.formats.strict_json import loads
from ...schemes_db.recipes import in_order
from ...schemes_db.run_record import RunRecord
from ..cluster.connection import Cluster
from ..cluster.turn_worker import Report
from ..cluster.workers import pool_of, release
from ..runs.record import Record
from ..runs.result import Find
from .catalogue import CatalogueUpdater
from .events import OnEvent, TurnBegun, Walking
from .folder import ImproveConfig
from .gaps import Gap
from .history import History
from .neighbours import neighbourhood

Turns = Sequence[tuple[Gap, int]]
"""Formats to search, each with the number of its earlier turns."""


class ClusterTurns:
    """Concurrent turns, one a worker, on a processor or a GPU.

    Reports are text, and every scheme in them is certified again before it is stored.

    Args:
        history: earlier turns.
        on_turn: called with every turn, or None where all routes to a format are dead ends.
        config: its device is that of each worker; walkers start from the schemes that the head sends.

    Raises:
        PlanError: the cluster is not found, or some of its nodes run other code.
    """

    def __init__(
        self,
        stack: ExitStack,
        updater: CatalogueUpdater,
        cluster: Cluster,
        config: ImproveConfig,
        on_event: OnEvent,
        stop: Callable[[], bool],
        *,
        history: History,
        on_turn: Callable[[Gap, RunRecord | None], None],
    ) -> None:
        self._history, self._on_turn = history, on_turn
        self._updater, self._config = updater, config
        self._on_event, self._stop = on_event, stop
        cluster.connect()
        release()  # workers of earlier searches, and their memory
        self.pool = pool_of(cluster, gpus=config.device == "cuda")
        stack.callback(release)

    def __len__(self) -> int:
        return len(self.pool.workers)

    def take(self, turns: Turns, seconds: float, longest: float) -> None:
        """Run turns of `seconds` each, at most one a worker: none goes on to `longest`, as the others would wait."""
        self.pool.run_turns(
            [self._task(gap, tried, seconds) for gap, tried in turns],
            seconds,
            lambda place, report: self._reported(turns[place][0], report),
            self._stop,
        )

    def _task(self, gap: Gap, tried: int, seconds: float) -> tuple[object, ...]:
        goal = int(np.prod(gap.target.shape))
        pools = {
            shape: self._updater.pool(shape, composed=int(np.prod(shape)) <= goal)
            for shape in neighbourhood(in_order(gap.target.shape))
        }
        self._on_event(TurnBegun(gap.target.name, f"{gap.target}: turn {tried + 1} on a worker"))
        return gap, tried, seconds, self._config, self._updater.ranks, pools, self._history.of(gap.target.name).turns

    def _reported(self, gap: Gap, report: Report) -> None:
        kind, text = report
        if kind == "stands":
            self._on_event(Walking(gap.target.name, text))
            return
        if kind == "turn":
            values = loads(text)
            self._on_turn(gap, None if values is None else RunRecord(**values))
            return
        found = Record.from_line(text).found
        if isinstance(found, Find):
            self._updater.take(found.scheme, found.certificate)

"""A turn of an improvement on a worker, which streams reports of its finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from queue import SimpleQueue
from threading import Thread
from typing import Any

from ...schemes_db import Certificate, Ring, Scheme, parse_ring
from ...schemes_db.run_record import RunRecord
from ...schemes_db.uneven import Shape
from ..improve.catalogue import CatalogueView
from ..improve.events import Control, Event, Walking
from ..improve.folder import ImproveConfig
from ..improve.gaps import Gap
from ..improve.history import History
from ..runs.result import Find, Record

Report = tuple[str, str]
"""A kind and its text: "find" with a line of `Record`, "stands" with a progress line, or "turn" with a summary of the
turn, as JSON."""


@dataclass
class KnownSchemes(CatalogueView):
    """A worker's view of the catalogue: the ranks and schemes that the head sent with the turn, and its own finds."""

    over: Ring
    ranks: dict[str, dict[Shape, int]]
    pools: Mapping[Shape, list[Scheme]]
    on_find: Callable[[Scheme, Certificate], None]

    def pool(self, shape: Shape, composed: bool = True) -> list[Scheme]:
        """Return the schemes that the head sent for a format; `composed` is ignored."""
        return list(self.pools.get(shape, ()))

    def take(self, scheme: Scheme, certificate: Certificate) -> None:
        self.note(scheme)
        self.on_find(scheme, certificate)


def reports(
    islands: Any,
    gap: Gap,
    tried: int,
    seconds: float,
    config: ImproveConfig,
    ranks: dict[str, dict[Shape, int]],
    pools: Mapping[Shape, list[Scheme]],
    turns: list[RunRecord],
) -> Iterator[Report]:
    """Run a turn in this process and yield finds during the turn; see `Descents.turn`."""
    from ..improve.descents import Descents  # imports a compiler

    queue: SimpleQueue[Report | BaseException | None] = SimpleQueue()

    def found(scheme: Scheme, certificate: Certificate) -> None:
        queue.put(("find", Record(0, 0, Find(scheme, certificate, scheme, certificate)).to_line()))

    def stands(event: Event) -> None:
        if isinstance(event, Walking):
            queue.put(("stands", event.text))

    def turn() -> None:
        try:
            over = parse_ring("Z" if config.ring == "ZT" else config.ring)
            known = KnownSchemes(over, {name: dict(one) for name, one in ranks.items()}, pools, found)
            done = Descents(known, Control(config, on_event=stands), islands).turn(gap, tried, seconds, History(turns))
            queue.put(("turn", json.dumps(done and asdict(done))))
            queue.put(None)
        except BaseException as error:  # raised again where the reports are read
            queue.put(error)

    thread = Thread(target=turn, daemon=True)
    thread.start()
    while (report := queue.get()) is not None:
        if isinstance(report, BaseException):
            raise report
        yield report
    thread.join()

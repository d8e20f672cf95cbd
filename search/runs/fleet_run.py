"""Searches without walks on the flip graph, in rounds: annealing of triples, groups of products, least squares."""

from __future__ import annotations

from concurrent.futures import Executor
from importlib import import_module

from ...schemes_db import Q
from ...schemes_db.ring import Z2
from ..groups.product_rank import PREFIX
from ..turn_fleet import FoundFleet
from .folder import Checkpoint
from .search_run import SearchRun
from .snapshot import Arrays

_FLEETS = {
    "triples": ("..triples.fleet", "TripleFleet"),
    "groups": ("..groups.fleet", "GroupFleet"),
    "least-squares": ("..leastsquares.fleet", "SquaresFleet"),
}
"""The searches of each method, imported when a run starts."""


class FleetRun(SearchRun):
    """A run of a `FoundFleet` in progress.

    Raises:
        PlanError: see `FoundFleet.of_run`.
    """

    _fleet: FoundFleet

    def _enter(self, stage: int) -> None:
        config = self.config
        module, name = _FLEETS["groups" if config.objective.startswith(PREFIX) else config.method]
        kind: type[FoundFleet] = getattr(import_module(module, __package__), name)
        self._fleet = kind.of_run(config, lambda: self.stop())

    def advance(self, executor: Executor | None) -> None:
        """Run one round; finds are certified and recorded, unless they are known or over a ring that is not wanted."""
        config, fleet = self.config, self._fleet
        self._round += 1
        for number, scheme in fleet.find(config.setting(0).steps, executor):
            found = scheme.over_z2() if config.output_ring is Z2 else scheme
            if found is None or found.digest in self._seen or (found.ring is Q and config.output_ring is not Q):
                continue
            self._found(found, number, f", {fleet.REMARK} {number}", fleet.FINDS or fleet.RELATION)
            if fleet.COSTLY and self.done:
                break
        self.broken = fleet.COSTLY and self.stop()
        if not self.broken:
            self.save(due=True)

    def _arrays(self) -> Arrays:
        return self._fleet.to_arrays()

    def _take_up(self, checkpoint: Checkpoint) -> None:
        self._fleet.take_arrays(checkpoint.arrays)

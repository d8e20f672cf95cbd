"""Searches without walks on the flip graph, in rounds: annealing of triples, groups of products, least squares."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from ...schemes_db import Q
from ...schemes_db.ring import Z2
from ..groups.product_rank import PREFIX, inner_format
from ..turn_fleet import FoundFleet
from .config import RunConfig
from .folder import Checkpoint
from .search_run import SearchRun
from .snapshot import Arrays


def _triples(config: RunConfig, stop: Callable[[], bool]) -> FoundFleet:
    from ..triples.annealer import usual_rank
    from ..triples.fleet import TripleFleet

    target, free = config.final_target, config.rank is None
    rank = usual_rank(target) if config.rank is None else config.rank
    return TripleFleet(target, rank, seed=config.seed, walkers=config.walks, descends=free)


def _groups(config: RunConfig, stop: Callable[[], bool]) -> FoundFleet:
    from ..groups.fleet import GroupFleet

    inner, room = inner_format(config.objective).shape, config.setting(0).policy.margin + 1
    starts = [config.terms.to_scheme()]
    return GroupFleet(config.final_target, starts, inner, seed=config.seed, walkers=config.walks, room=room)


def _least_squares(config: RunConfig, stop: Callable[[], bool]) -> FoundFleet:
    from ..leastsquares.fleet import SquaresFleet

    given: dict[str, Any] = {"seed": config.seed, "device": config.device, "chains": config.walks}
    rank = config.rank or 0  # the configuration requires one
    return SquaresFleet(config.final_target, rank, config.start, stop=stop, **given)


_FLEETS = {"triples": _triples, "groups": _groups, "least-squares": _least_squares}
"""The searches of a run by each method; compilers are imported when one starts."""


class FleetRun(SearchRun):
    """A run of a `FoundFleet` in progress.

    Raises:
        PlanError: the target, the rank or the start does not fit.
    """

    _fleet: FoundFleet

    def _enter(self, stage: int) -> None:
        config = self.config
        method = "groups" if config.objective.startswith(PREFIX) else config.method
        self._fleet = _FLEETS[method](config, lambda: self.stop())

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

"""Searches without walks on the flip graph, in rounds: annealing of triples, groups of products, least squares."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

from ...schemes_db import Z2, Q
from ..groups.product_rank import FORMATS, by_products, inner_format
from ..turn_fleet import FoundFleet
from .certify_find import Ancestry, provenance_of
from .folder import Checkpoint
from .search_run import SearchRun
from .snapshot import Arrays


class FleetRun(SearchRun):
    """A run of a `FoundFleet` in progress.

    Raises:
        PlanError: the target, the rank or the start does not fit.
    """

    _fleet: FoundFleet

    def _enter(self, stage: int) -> None:
        """Set up the searches of the method; compilers are imported now."""
        config, target = self.config, self.config.final_target
        given: dict[str, Any] = {"seed": config.seed, "walkers": config.walks}
        if by_products(config.objective):
            from ..groups.fleet import FormatFleet, GroupFleet

            given |= {"room": config.setting(0).policy.margin + 1, "device": config.device}
            if config.objective == FORMATS:
                self._fleet = FormatFleet(target, [config.terms.to_scheme()], **given)
            else:
                self._fleet = GroupFleet(target, [config.terms.to_scheme()], inner_format(config.objective), **given)
        elif config.method == "triples":
            from ..triples.annealer import TripleFleet, usual_rank

            rank = usual_rank(target) if config.rank is None else config.rank
            self._fleet = TripleFleet(target, rank, descends=config.rank is None, device=config.device, **given)
        else:
            from ..leastsquares.fleet import SquaresFleet

            rank = config.rank or 0  # the configuration requires one
            given = {"seed": config.seed, "chains": config.walks, "device": config.device}
            self._fleet = SquaresFleet(target, rank, config.start, stop=lambda: self.stop(), **given)

    def advance(self, executor: Executor | None) -> None:
        """Run one round; finds are certified, and recorded if they improve the run's objective.

        Schemes that are known, or over a ring that is not wanted, are left out.
        """
        config, fleet = self.config, self._fleet
        ancestry = Ancestry((config.start.digest,) if config.start else ())
        self._round += 1
        for number, scheme in fleet.find(config.setting(0).steps, executor):
            found = scheme.over_z2() if config.output_ring is Z2 else scheme
            if found is None or found.digest in self._seen or (found.ring is Q and config.output_ring is not Q):
                continue
            if found.rank < self._lowest:
                self._lowest, self._gained = found.rank, self.seconds
            remark, relation = f"round {self._round}, {fleet.REMARK} {number}", fleet.FINDS or fleet.RELATION
            source = provenance_of(config, found, ancestry, remark, self.seconds, relation)
            record = self._certified(found.replace(provenance=source), number)
            if config.objective == FORMATS or self._better(record.found):
                self._keep(record)
                self._record([record])
            if fleet.COSTLY and self.done:
                break
        self.broken = fleet.COSTLY and self.stop()
        if not self.broken:
            self.save(due=True)

    def _arrays(self) -> Arrays:
        return self._fleet.to_arrays()

    def _take_up(self, checkpoint: Checkpoint) -> None:
        self._fleet.take_arrays(checkpoint.arrays)

"""A search by annealing of Strassen triples, in rounds."""

from __future__ import annotations

from concurrent.futures import Executor

from ...schemes_db import Scheme
from ..runs.folder import Checkpoint
from ..runs.search_run import SearchRun
from ..runs.snapshot import Arrays
from .annealer import Annealer, least_rank, usual_rank
from .fleet import TripleFleet


class TripleRun(SearchRun):
    """A search by triples in progress. Without a rank wanted, every find is below all earlier ones.

    Raises:
        PlanError: the target has no side of 2, or the rank is too low.
    """

    _annealers: list[Annealer]

    def _enter(self, stage: int) -> None:
        config = self.config
        rank = usual_rank(config.final_target) if config.rank is None else config.rank
        integral = not config.output_ring.characteristic
        self._annealers = [
            Annealer(config.final_target, rank, integral, config.seed, index) for index in range(config.walks)
        ]

    def advance(self, executor: Executor | None) -> None:
        def one(annealer: Annealer) -> list[Scheme]:
            return annealer.advance(self.config.steps)

        found = list(map(one, self._annealers) if executor is None else executor.map(one, self._annealers))
        self._round += 1
        for walk, schemes in enumerate(found):
            for scheme in schemes:
                self._take(walk, scheme)
        self.save(due=True)

    def _take(self, walk: int, scheme: Scheme) -> None:
        """Certify and record a scheme, unless it is known or, without a rank wanted, no lower than earlier ones."""
        config = self.config
        if scheme.digest in self._seen or (config.rank is None and scheme.rank >= self._lowest):
            return
        self._found(scheme, walk, f", annealing {walk}", TripleFleet.RELATION)
        if config.rank is None:
            for annealer in self._annealers:
                annealer.aim(max(scheme.rank - 1, least_rank(config.final_target)))

    def _arrays(self) -> Arrays:
        return {
            f"{name} {i}": array
            for i, annealer in enumerate(self._annealers)
            for name, array in annealer.to_arrays().items()
        }

    def _take_up(self, checkpoint: Checkpoint) -> None:
        for i, annealer in enumerate(self._annealers):
            annealer.take_arrays({name: checkpoint.arrays[f"{name} {i}"] for name in annealer.to_arrays()})

    def _ranks(self) -> dict[int, int]:
        ranks = [annealer.lowest for annealer in self._annealers]
        return {rank: ranks.count(rank) for rank in sorted(set(ranks))}

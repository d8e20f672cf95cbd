"""Annealers of one format, side by side: searches by triples, and turns of `improve`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from operator import methodcaller

from ...schemes_db import Scheme, Target
from ..runs.snapshot import Arrays
from ..turn_fleet import FoundFleet
from .annealer import Annealer, least_rank


class TripleFleet(FoundFleet):
    """Annealers of one format; with `descends` all aim below the lowest find.

    Args:
        rank: the rank to aim at.

    Raises:
        PlanError: the target has no side of 2, or the rank is too low.
    """

    STATE = ("_least",)
    STEPS, RELATION, REMARK = 100_000, "annealing of Strassen triples", "annealing"

    def __init__(self, target: Target, rank: int, *, seed: int, walkers: int, descends: bool = True) -> None:
        super().__init__(target, walkers)
        self._annealers = [Annealer(target, rank, seed, index) for index in range(walkers)]
        self._descends, self._least = descends, len(target.terms)

    def find(self, steps: int, executor: Executor | None) -> Iterator[tuple[int, Scheme]]:
        mapped = list((map if executor is None else executor.map)(methodcaller("advance", steps), self._annealers))
        for number, scheme in ((number, scheme) for number, schemes in enumerate(mapped) for scheme in schemes):
            if not self._descends or scheme.rank < self._least:
                yield number, scheme
                if self._descends:
                    self._least = scheme.rank
                    for annealer in self._annealers:
                        annealer.aim(max(scheme.rank - 1, least_rank(self.target)))

    def to_arrays(self) -> Arrays:
        every = {f"{name} {i}": a for i, one in enumerate(self._annealers) for name, a in one.to_arrays().items()}
        return super().to_arrays() | every

    def take_arrays(self, arrays: Arrays) -> None:
        super().take_arrays(arrays)
        for i, one in enumerate(self._annealers):
            one.take_arrays({name: arrays[f"{name} {i}"] for name in one.STATE})

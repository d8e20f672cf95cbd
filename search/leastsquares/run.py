"""A search by least squares, in rounds."""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from ...schemes_db import Scheme, Z
from ..runs.folder import Checkpoint
from ..runs.search_run import SearchRun
from ..runs.snapshot import Arrays as Snapshot
from .arrays import Arrays, FloatArray
from .discretise import discretised
from .equations import Equations
from .fleet import SquaresFleet
from .hopping import Hopping


class LeastSquaresRun(SearchRun):
    """A search by least squares in progress.

    Raises:
        PlanError: the device has no array library.
    """

    _hopping: Hopping

    def _enter(self, stage: int) -> None:
        config = self.config
        assert config.rank is not None  # the configuration requires it
        equations = Equations(config.final_target, config.rank, Arrays(config.device))
        factors = None
        if config.start is not None:
            factors = [f.dense.reshape(f.rank, -1) / f.denominator for f in config.start.factors]
        self._hopping = Hopping(equations, config.walks, config.seed, factors)

    def advance(self, executor: Executor | None) -> None:
        """Run one round: steps of all chains, then rational schemes near their real solutions, which are certified."""
        self._round += 1
        solutions = self._hopping.advance(self.config.setting(0).steps)

        def rational(numbered: tuple[int, FloatArray]) -> Scheme | None:
            number, x = numbered
            if self.stop():
                return None
            rng = np.random.default_rng((self.config.seed, self._round, number))
            return discretised(self.config.final_target, x, self._hopping.rank, rng)

        numbered = list(enumerate(solutions))
        schemes = map(rational, numbered) if executor is None else executor.map(rational, numbered)
        for number, scheme in enumerate(schemes):
            if scheme is not None:
                self._take(number, scheme)
            if self.done and executor is None:
                break
        self.broken = self.stop()
        if not self.broken:
            self.save(due=True)

    def _take(self, number: int, scheme: Scheme) -> None:
        """Certify and record a scheme, unless it is known or has fractions where integers are wanted."""
        config = self.config
        if scheme.digest in self._seen or (config.output_ring is Z and scheme.ring is not Z):
            return
        self._found(scheme, number, f", solution {number}", SquaresFleet.RELATION)

    def _arrays(self) -> Snapshot:
        return self._hopping.to_arrays()

    def _take_up(self, checkpoint: Checkpoint) -> None:
        self._hopping.take_arrays(checkpoint.arrays)

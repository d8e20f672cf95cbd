"""Chains of least squares with their rational schemes: searches by that method, and turns of `improve`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor

import numpy as np

from ...schemes_db import Scheme, Target
from ..runs.snapshot import Arrays as Snapshot
from ..turn_fleet import FoundFleet, Stop
from .arrays import Arrays, FloatArray
from .discretise import discretised
from .equations import Equations
from .hopping import Hopping

CHAINS, GPU_CHAINS = 4, 256
"""Numbers of chains."""

MOST_TERMS, GPU_TERMS = 20, 120
"""Largest m k n of a format on a processor and on a GPU: 2x2x5:18 takes a processor half a minute, and a GPU has memory
for 256 chains of 3x5x8:90."""


class SquaresFleet(FoundFleet):
    """Chains for one format and rank: one search.

    Args:
        rank: the number of products of the chains.
        start: a scheme of higher rank, or None; see `Hopping`.
        stop: True ends the search for rational schemes.
        chains: their number; 0 for that of the device.

    Raises:
        PlanError: the device has no array library.
    """

    STATE = ("_rounds",)
    STEPS, RELATION = 50, "least squares, entries fixed at simple values"
    REMARK, COSTLY = "solution", True

    def __init__(
        self, target: Target, rank: int, start: Scheme | None, *, seed: int, device: str, stop: Stop, chains: int = 0
    ) -> None:
        super().__init__(target, 1)
        arrays = Arrays(device)
        factors = None
        if start is not None and start.rank >= rank and not start.ring.characteristic:
            factors = [f.dense.reshape(f.rank, -1) / f.denominator for f in start.factors]
        chains = chains or (GPU_CHAINS if arrays.on_gpu else CHAINS)
        self._hopping = Hopping(Equations(target, rank, arrays), chains, seed, factors)
        self._rank, self._seed, self._stop, self._rounds = rank, seed, stop, 0

    def find(self, steps: int, executor: Executor | None) -> Iterator[tuple[int, Scheme]]:
        """Advance all chains; yield rational schemes near their real solutions, by the numbers of these."""
        self._rounds += 1
        solutions, rounds = self._hopping.advance(steps), self._rounds

        def rational(numbered: tuple[int, FloatArray]) -> Scheme | None:
            number, x = numbered
            if self._stop():
                return None
            rng = np.random.default_rng((self._seed, rounds, number))
            return discretised(self.target, x, self._rank, rng)

        schemes = (map if executor is None else executor.map)(rational, enumerate(solutions))
        yield from ((number, scheme) for number, scheme in enumerate(schemes) if scheme is not None)

    def to_arrays(self) -> Snapshot:
        return super().to_arrays() | self._hopping.to_arrays()

    def take_arrays(self, arrays: Snapshot) -> None:
        super().take_arrays(arrays)
        self._hopping.take_arrays(arrays)

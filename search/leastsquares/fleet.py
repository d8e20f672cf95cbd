"""Chains of least squares with their rational schemes, for turns of `improve`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...schemes_db import Scheme, Target
from ..turn_fleet import FoundFleet
from .arrays import Arrays
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
        stop: True ends the search for a rational scheme.

    Raises:
        PlanError: the device has no array library.
    """

    STEPS, RELATION = 50, "least squares, entries fixed at simple values"

    def __init__(
        self,
        target: Target,
        rank: int,
        start: Scheme | None,
        *,
        seed: int,
        device: str,
        stop: Callable[[], bool],
    ) -> None:
        super().__init__(target, 1)
        arrays = Arrays(device)
        factors = None
        if start is not None and start.rank >= rank and not start.ring.characteristic:
            factors = [f.dense.reshape(f.rank, -1) / f.denominator for f in start.factors]
        chains = GPU_CHAINS if arrays.on_gpu else CHAINS
        self._hopping = Hopping(Equations(target, rank, arrays), chains, seed, factors)
        self._seed, self._stop = seed, stop

    def _advance(self, steps: int) -> Sequence[Sequence[Scheme]]:
        found = []
        for number, x in enumerate(self._hopping.advance(steps)):
            if self._stop():
                break
            rng = np.random.default_rng((self._seed, self.launches, number))
            if (scheme := discretised(self.target, x, self._hopping.rank, rng)) is not None:
                found.append(scheme)
                break  # the others are of the same rank
        return [found]

"""Basin hopping: chains descend to minima of the equations, and leave those that are no solutions at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from ..runs.snapshot import Arrays as Snapshot
from ..runs.snapshot import Checkpointed
from .arrays import FloatArray
from .equations import Equations
from .levenberg import Chains

PERIOD = 10
"""Steps between decisions on the chains."""

SOLVED = 1e-13
"""Sum of squares of a solution. Of minima it is mostly near an integer, the number of entries that are missed."""

SLOW = 0.02
"""A chain whose cost falls by less than this share of its residual in PERIOD steps is at a minimum."""

DEGENERATE, PATIENT_STEPS, MOST_STEPS = 1e-3, 150, 250
"""A residual below DEGENERATE may still fall to 0 for PATIENT_STEPS; after MOST_STEPS every chain moves on."""

AS_GOOD_AS = 0.9
"""What a residual below it counts as: factors that nearly solve the equations, by cancellation, are no nearer to a
solution than those that miss one entry."""

TEMPERATURE = 0.3
"""A minimum that is worse by d is accepted with probability exp(-d / TEMPERATURE)."""

PATIENCE = 150
"""Hops without a better minimum until a chain begins anew."""

SCALE, START_RIDGE, START_DECAY = 0.5, 0.03, 0.95
"""Standard deviation of random factors, ridge of a start and its decay in a step. The ridge keeps chains from
factors that cancel: at 3x3x3:23, 30 of 51 starts become solutions with a ridge of 0.03 that falls to 1e-4 at 0.93 a
step, 4 of 21 with 0.01 at 0.9."""

NOISE, REPLACED = (0.05, 0.1, 0.2, 0.35), (1, 2, 4, 8)
"""Hops: noise of one of these standard deviations on all factors, or so many products replaced by random ones."""

RIDGES = ((0.03, 0.93), (0.01, 0.9))
"""Ridge and decay after a hop."""


class Hopping(Checkpointed):
    """Chains that hop between minima. The same seed gives the same solutions on a processor.

    Args:
        equations: of a target and a rank.
        count: the number of chains, B.
        seed: of all random changes.
        start: U, V and W (P, blocks) of a scheme of a higher rank, from which every other chain starts, with random
            products left out; None for random factors only.
    """

    STATE = ("_base_residuals", "_best", "_before", "_idle", "_age", "_decisions")

    def __init__(self, equations: Equations, count: int, seed: int, start: Sequence[FloatArray] | None = None) -> None:
        self._equations, self._count, self._seed, self._start = equations, count, seed, start
        self._decisions = 0
        self._base_residuals, self._best = np.full((2, count), np.inf)
        self._idle, self._age = np.zeros((2, count), dtype=np.int64)
        self._before = np.full(count, np.inf)
        put = equations.arrays.put
        self._base = put(self._starts(np.random.default_rng((seed, 0))))
        self._chains = Chains(equations, self._base)
        self._send(np.ones(count, bool), self._base, np.full(count, START_RIDGE), np.full(count, START_DECAY), 1.0)

    def advance(self, steps: int) -> list[FloatArray]:
        """Take `steps` steps, rounded up to a multiple of PERIOD; return the solutions (size,) on the way.

        BLAS takes one thread: with more, on two busy cores, a step of 2x2x3:11 takes 25 times as long.
        """
        found = []
        with threadpool_limits(1, user_api="blas"):
            for _ in range(-(-steps // PERIOD)):
                for _ in range(PERIOD):
                    self._chains.step()
                self._age += PERIOD
                found += self._decide()
        return found

    def _decide(self) -> list[FloatArray]:
        """Collect solutions, send chains at a minimum to a neighbour of theirs and idle ones to a new start."""
        self._decisions += 1
        rng = np.random.default_rng((self._seed, self._decisions))
        arrays, chains = self._equations.arrays, self._chains
        residuals, costs = arrays.get(chains.residuals), arrays.get(chains.costs)
        solved = residuals < SOLVED
        slow = (self._before - costs < SLOW * residuals) & (self._age >= 2 * PERIOD)
        slow &= (residuals > DEGENERATE) | (self._age > PATIENT_STEPS)
        slow = (slow | (self._age > MOST_STEPS)) & ~solved
        self._before = costs.copy()
        level = np.maximum(residuals, AS_GOOD_AS)
        with np.errstate(over="ignore", invalid="ignore"):
            accepted = slow & (rng.random(self._count) < np.exp((self._base_residuals - level) / TEMPERATURE))
        self._base = arrays.xp.where(arrays.put(accepted)[:, None], chains.x, self._base)
        self._base_residuals = np.where(accepted, level, self._base_residuals)
        better = slow & (level < self._best - 0.1)
        self._best = np.where(better, level, self._best)
        self._idle = np.where(better, 0, self._idle + slow)
        found = [arrays.get(chains.x[int(chain)]).copy() for chain in np.flatnonzero(solved)]
        anew = solved | (self._idle > PATIENCE)
        if anew.any():
            self._base_residuals[anew], self._best[anew], self._idle[anew] = np.inf, np.inf, 0
            start = arrays.put(self._starts(rng))
            self._send(anew, start, np.full(self._count, START_RIDGE), np.full(self._count, START_DECAY), 1.0)
        if (hops := slow & ~anew).any():
            ridge, decay = np.array(RIDGES)[rng.integers(len(RIDGES), size=self._count)].T
            self._send(hops, self._neighbours(rng), ridge, decay, 0.1)
        return found

    def _send(self, where: npt.NDArray[np.bool_], x: Any, ridge: FloatArray, decay: FloatArray, damping: float) -> None:
        put = self._equations.arrays.put
        self._chains.restart(put(where), x, put(ridge), put(decay), damping)
        self._age[where], self._before[where] = 0, np.inf

    def _starts(self, rng: np.random.Generator) -> FloatArray:
        """Return new starts for all chains, (B, size)."""
        x = SCALE * rng.standard_normal((self._count, self._equations.size))
        if self._start is not None:
            for chain in range(0, self._count, 2):
                left = rng.permutation(len(self._start[0]))[: self._equations.rank]
                x[chain] = 0.1 * x[chain] + self._equations.flat([factor[left] for factor in self._start])
        return x

    def _neighbours(self, rng: np.random.Generator) -> Any:
        """Return a random change of the last accepted minimum of every chain, (B, size)."""
        equations, put = self._equations, self._equations.arrays.put
        kinds = rng.integers(len(NOISE) + len(REPLACED), size=self._count)
        noise, replaced = np.zeros(self._count), np.zeros((self._count, equations.rank), dtype=bool)
        for chain, kind in enumerate(kinds):
            if kind < len(NOISE):
                noise[chain] = NOISE[kind]
            else:
                replaced[chain, rng.permutation(equations.rank)[: REPLACED[kind - len(NOISE)]]] = True
        random = equations.split(put(rng.standard_normal((self._count, equations.size))))
        amount, anew = put(noise)[:, None, None], put(replaced)[:, :, None]
        changed = [
            equations.arrays.xp.where(anew, SCALE * z, part + amount * z)
            for part, z in zip(equations.split(self._base), random, strict=True)
        ]
        return equations.join(*changed)

    def to_arrays(self) -> Snapshot:
        base = self._equations.arrays.get(self._base)
        return super().to_arrays() | self._chains.to_arrays() | {"base": base}

    def take_arrays(self, arrays: Snapshot) -> None:
        super().take_arrays(arrays)
        self._chains.take_arrays(arrays)
        self._base = self._equations.arrays.put(arrays["base"])

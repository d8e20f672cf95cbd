"""Basin hopping: chains descend to minima of the equations, and leave those that are no solutions at random.

They descend by Levenberg-Marquardt steps, in batches, with a ridge that vanishes and a penalty on large entries.
"""

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

BOUND, PENALTY = 1.2, 1.0
"""Entries beyond the bound cost PENALTY times the square of the excess: without it many chains diverge to factors that
cancel (the target has border rank below its rank)."""

MIN_DAMPING, MAX_DAMPING, RIDGE_FLOOR = 1e-10, 1e6, 1e-4

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
    """Chains that hop between minima: a batch of factors x and the state of their descents.

    The cost of a chain is |residual|^2 + ridge |x|^2 + PENALTY sum(max(0, |x| - BOUND)^2). The same seed gives the same
    solutions on a processor.

    Args:
        equations: of a target and a rank.
        count: the number of chains, B.
        seed: of all random changes.
        start: U, V and W (P, blocks) of a scheme of a higher rank, from which every other chain starts, with random
            products left out; None for random factors only.

    Attributes:
        x: (B, size).
        residuals: (B,), the sum of squares of the equations alone.
        costs: (B,).
        ridge: (B,); `step` multiplies it by `decay`, and sets it to 0 below RIDGE_FLOOR.
    """

    STATE = ("_base_residuals", "_best", "_before", "_idle", "_age", "_decisions")

    ON_DEVICE = ("x", "ridge", "decay", "_damping", "_growth")
    """Arrays of the device from which the rest follows."""

    def __init__(self, equations: Equations, count: int, seed: int, start: Sequence[FloatArray] | None = None) -> None:
        self.equations, self._count, self._seed, self._start = equations, count, seed, start
        self._decisions = 0
        self._base_residuals, self._best, self._before = np.full((3, count), np.inf)
        self._idle, self._age = np.zeros((2, count), dtype=np.int64)
        put = equations.arrays.put
        self.x = self._base = put(self._starts(np.random.default_rng((seed, 0))))
        self.ridge, self.decay = put(np.full(count, START_RIDGE)), put(np.full(count, START_DECAY))
        self._damping, self._growth = put(np.ones(count)), put(np.full(count, 2.0))
        self._measure()

    def _measure(self) -> None:
        """Compute what follows from x and the ridge."""
        self._residual = self.equations.residual(self.x)
        self.residuals = (self._residual**2).sum((1, 2))
        self.costs = self.residuals + self._extra(self.x)

    def _excess(self, x: Any) -> Any:
        return (abs(x) - BOUND).clip(0, None)

    def _extra(self, x: Any) -> Any:
        """Return what the cost has beyond the residual, (B,)."""
        return self.ridge * (x * x).sum(1) + PENALTY * (self._excess(x) ** 2).sum(1)

    def step(self) -> None:
        """Take one step of every chain, or raise its damping where the step would not lower the cost."""
        equations, x, select = self.equations, self.x, self.equations.arrays.xp.where
        excess = self._excess(x)
        gradient = (
            equations.gradient(x, self._residual)
            + self.ridge[:, None] * x
            + PENALTY * excess * select(x < 0, -1.0, 1.0)
        )
        diagonal = (self._damping + self.ridge)[:, None] + PENALTY * (excess > 0)
        direction, solved = equations.direction(x, gradient, diagonal)
        direction = select(solved[:, None], direction, 0.0 * x)
        moved = x + direction
        residual = equations.residual(moved)
        residuals = (residual**2).sum((1, 2))
        costs = residuals + self._extra(moved)
        predicted = (direction * (self._damping[:, None] * direction - gradient)).sum(1)
        better = solved & (costs < self.costs)
        ratio = select(better, (self.costs - costs) / select(better, predicted.clip(1e-300, None), 1.0), 0.0)
        lower = (1 - (2 * ratio - 1) ** 3).clip(0.2, 2.0)  # Nielsen 1999
        damping = self._damping * select(better, lower, self._growth)
        self._damping = damping.clip(MIN_DAMPING, MAX_DAMPING)
        self._growth = select(better, 2.0, (2 * self._growth).clip(None, 64.0))
        self.x = select(better[:, None], moved, x)
        self._residual = select(better[:, None, None], residual, self._residual)
        self.residuals = select(better, residuals, self.residuals)
        ridge = self.ridge * self.decay
        self.ridge = select(ridge < RIDGE_FLOOR, 0.0, ridge)
        self.costs = self.residuals + self._extra(self.x)

    def advance(self, steps: int) -> list[FloatArray]:
        """Take `steps` steps, rounded up to a multiple of PERIOD; return the solutions (size,) on the way.

        BLAS takes one thread: with more, on two busy cores, a step of 2x2x3:11 takes 25 times as long.
        """
        found = []
        with threadpool_limits(1, user_api="blas"):
            for _ in range(-(-steps // PERIOD)):
                for _ in range(PERIOD):
                    self.step()
                self._age += PERIOD
                found += self._decide()
        return found

    def _decide(self) -> list[FloatArray]:
        """Collect solutions, send chains at a minimum to a neighbour of theirs and idle ones to a new start."""
        self._decisions += 1
        rng = np.random.default_rng((self._seed, self._decisions))
        arrays = self.equations.arrays
        residuals, costs = arrays.get(self.residuals), arrays.get(self.costs)
        solved = residuals < SOLVED
        slow = (self._before - costs < SLOW * residuals) & (self._age >= 2 * PERIOD)
        slow &= (residuals > DEGENERATE) | (self._age > PATIENT_STEPS)
        slow = (slow | (self._age > MOST_STEPS)) & ~solved
        self._before = costs.copy()
        level = np.maximum(residuals, AS_GOOD_AS)
        with np.errstate(over="ignore", invalid="ignore"):
            accepted = slow & (rng.random(self._count) < np.exp((self._base_residuals - level) / TEMPERATURE))
        self._base = arrays.xp.where(arrays.put(accepted)[:, None], self.x, self._base)
        self._base_residuals = np.where(accepted, level, self._base_residuals)
        better = slow & (level < self._best - 0.1)
        self._best = np.where(better, level, self._best)
        self._idle = np.where(better, 0, self._idle + slow)
        found = [arrays.get(self.x[int(chain)]).copy() for chain in np.flatnonzero(solved)]
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
        """Send the chains where (B,) is True to x (B, size), with a ridge and its decay (B,)."""
        put, select = self.equations.arrays.put, self.equations.arrays.xp.where
        sent = put(where)
        self.x = select(sent[:, None], x, self.x)
        self.ridge, self.decay = select(sent, put(ridge), self.ridge), select(sent, put(decay), self.decay)
        self._damping, self._growth = select(sent, damping, self._damping), select(sent, 2.0, self._growth)
        self._measure()
        self._age[where], self._before[where] = 0, np.inf

    def _starts(self, rng: np.random.Generator) -> FloatArray:
        """Return new starts for all chains, (B, size)."""
        x = SCALE * rng.standard_normal((self._count, self.equations.size))
        if self._start is not None:
            for chain in range(0, self._count, 2):
                left = rng.permutation(len(self._start[0]))[: self.equations.rank]
                x[chain] = 0.1 * x[chain] + self.equations.flat([factor[left] for factor in self._start])
        return x

    def _neighbours(self, rng: np.random.Generator) -> Any:
        """Return a random change of the last accepted minimum of every chain, (B, size)."""
        equations, put = self.equations, self.equations.arrays.put
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
        get = self.equations.arrays.get
        on_device = {name: get(getattr(self, name)) for name in self.ON_DEVICE}
        return super().to_arrays() | on_device | {"base": get(self._base)}

    def take_arrays(self, arrays: Snapshot) -> None:
        super().take_arrays(arrays)
        for name in self.ON_DEVICE:
            setattr(self, name, self.equations.arrays.put(arrays[name]))
        self._base = self.equations.arrays.put(arrays["base"])
        self._measure()

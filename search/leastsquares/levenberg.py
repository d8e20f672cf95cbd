"""Levenberg-Marquardt steps for batches of chains, with a ridge that vanishes and a penalty on large entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runs.snapshot import Arrays as Snapshot
from ..runs.snapshot import Checkpointed
from .equations import Equations

BOUND, PENALTY = 1.2, 1.0
"""Entries beyond the bound cost PENALTY times the square of the excess: without it many chains diverge to factors that
cancel (the target has border rank below its rank)."""

MIN_DAMPING, MAX_DAMPING = 1e-10, 1e6


class Chains(Checkpointed):
    """A batch of factors x and the state of their descents.

    The cost of a chain is |residual|^2 + ridge |x|^2 + PENALTY sum(max(0, |x| - BOUND)^2).

    Attributes:
        x: (B, size).
        residuals: (B,), the sum of squares of the equations alone.
        costs: (B,).
        ridge: (B,); `step` multiplies it by `decay`, and sets it to 0 below `floor`.
    """

    STATE = ("x", "ridge", "decay", "_damping", "_growth")
    """The rest follows from these; they are arrays of the device."""

    def __init__(self, equations: Equations, x: Any, *, floor: float = 1e-4) -> None:
        self.equations, self.x, self._floor = equations, x, floor
        put, count = equations.arrays.put, len(x)
        self.ridge, self.decay = put(np.zeros(count)), put(np.ones(count))
        self._damping, self._growth = put(np.ones(count)), put(np.full(count, 2.0))
        self._measure()

    def _measure(self) -> None:
        """Compute what follows from x and the ridge."""
        self._residual = self.equations.residual(self.x)
        self.residuals = (self._residual**2).sum((1, 2))
        self.costs = self.residuals + self._extra(self.x)

    def restart(self, where: Any, x: Any, ridge: Any, decay: Any, damping: float) -> None:
        """Send the chains where (B,) is True to x (B, size), with a ridge and its decay (B,)."""
        select = self.equations.arrays.xp.where
        self.x = select(where[:, None], x, self.x)
        self.ridge, self.decay = select(where, ridge, self.ridge), select(where, decay, self.decay)
        self._damping, self._growth = select(where, damping, self._damping), select(where, 2.0, self._growth)
        self._measure()

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
        self.ridge = select(ridge < self._floor, 0.0, ridge)
        self.costs = self.residuals + self._extra(self.x)

    def to_arrays(self) -> Snapshot:
        return {name: self.equations.arrays.get(getattr(self, name)) for name in self.STATE}

    def take_arrays(self, arrays: Snapshot) -> None:
        for name in self.STATE:
            setattr(self, name, self.equations.arrays.put(arrays[name]))
        self._measure()

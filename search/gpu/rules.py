"""What a fleet is told: the patience of its walkers and how it selects among them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import PlanError

OBJECTIVES = ("rank", "half", "nnz")

(STARTS, PLUS_AFTER, MARGIN, RESTART_AFTER, TRAP_RANK, RANK_WEIGHT, COST_WEIGHT) = range(7)
"""Places of the numbers that the kernel reads."""

FAILS = 40
"""So many draws of a factor without active slots in a row mean that a walker can't flip."""


class Selection(NamedTuple):
    """Every `every` launches the worst share `worst` of the walkers become copies of random members
    of the best share `best`; 0 launches: never.

    It is done in each of `islands`, which never mix: a population ends as the offspring of one walker,
    and some schemes of a rank lead on to larger formats where others do not.
    """

    every: int = 0
    worst: float = 0.0
    best: float = 0.0
    islands: int = 1


class Rules(NamedTuple):
    """How the walkers of a fleet walk.

    Attributes:
        plus_after: steps without a plus or a lower rank after which a walker takes a plus.
        margin: a plus may lift the rank to at most this much above the lowest since the start.
        restart_after: steps without a lower rank after which a walker starts anew.
        trap_rank: at this rank or below, a walker that can't flip starts anew; above it takes a plus.
        objective: what is minimised with the rank: "rank" alone, "half" the number of full products too,
            "nnz" the nonzero coefficients too.
        rank_weight, cost_weight: the score of a walker is rank and cost with these weights.
        uphill: chance to accept a flip that raises the cost by 1; by n, its n-th power.
        selection: see `Selection`.
    """

    plus_after: int = 5_000
    margin: int = 2
    restart_after: int = 1 << 30
    trap_rank: int = 0
    objective: str = "rank"
    rank_weight: int = 1
    cost_weight: int = 0
    uphill: float = 0.15
    selection: Selection = Selection()

    def score(self, rank: int, cost: int = 0) -> int:
        """The number that walkers bring down."""
        return self.rank_weight * rank + self.cost_weight * cost

    def checked(self) -> Rules:
        """Itself.

        Raises:
            PlanError: a setting that means nothing.
        """
        if self.objective not in OBJECTIVES:
            raise PlanError(f"objective {self.objective!r} is not known; choose one of {', '.join(OBJECTIVES)}")
        if min(self.plus_after, self.restart_after, self.rank_weight) < 1 or min(self.margin, self.cost_weight) < 0:
            raise PlanError("plus_after, restart_after and rank_weight must be at least 1, margin and cost_weight 0")
        if not 0 <= self.uphill <= 1 or not all(0 <= share <= 1 for share in self.selection[1:3]):
            raise PlanError("uphill and the shares of the selection are between 0 and 1")
        if self.selection.islands < 1:
            raise PlanError("a selection has at least 1 island")
        return self

    def numbers(self, starts: int) -> npt.NDArray[np.int64]:
        """What the kernel reads; see the places above."""
        return np.array(
            [
                starts,
                self.plus_after,
                self.margin,
                self.restart_after,
                self.trap_rank,
                self.rank_weight,
                self.cost_weight,
            ],
            dtype=np.int64,
        )

    def thresholds(self) -> npt.NDArray[np.uint32]:
        """(16,): of 65536 flips that raise the cost by so much, how many are accepted."""
        return np.array([min(65536 * self.uphill**rise, 65536) for rise in range(16)]).astype(np.uint32)

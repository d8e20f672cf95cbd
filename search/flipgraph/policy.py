"""How walks walk: how long they wait, the flips that they do not make, and how they select among them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

from ...errors import PlanError

MISS_LIMIT = 40
"""So many misses in a row mean that the active slots share buckets but no values."""

PLUS_TRIES = 16
"""Pairs that a plus draws before it gives up."""

ANY_NONZEROS = 64
"""Nonzeros that any factor may have: no limit."""

COSTS = ("", "full", "nonzeros")
"""What a term costs beside counting as one: nothing, 1 if it is a full product, its nonzero coefficients."""


ORBITS = ("any", "whole")
"""Orbits that a walk under the shift and the reversal may have: of any size, or of all six terms only."""


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


NO_SELECTION = Selection()
"""Every walker for itself."""


class PolicyNumbers(NamedTuple):
    """What the compiled walk of a processor reads of a policy."""

    plus_after: int
    margin: int
    restart_after: int
    trap: int
    full: int


@dataclass(frozen=True, kw_only=True)
class Policy:
    """When a walk takes a plus or restarts, in steps (one draw each) but for the counts; its bounds and selection.

    Attributes:
        plus_after: steps without a plus or a new best after which the walk takes a plus.
        margin: a plus may lift the rank to at most this much above the walk's best.
        restart_after: steps without a new best after which the walk returns to its start.
        trap: how often a walk on a processor may run out of flips without a new best before it returns.
        trap_rank: at this rank or below, a walk on a GPU that can't flip returns to its start; above it takes a plus.
        chance: that a flip is made which raises the cost by one (by default: leaves one more product
            full); to the n-th power for n (Metropolis).
        full: full products beyond this count as one rank more each on a processor, and are no finds
            anywhere; below 0, they only decide between schemes of the same rank.
        nonzeros: coefficients that a factor may have.
        keep: so many terms at the beginning of the start stay as they are.
        cost: one of `COSTS`, for walks on a GPU.
        rank_weight, cost_weight: the score that walks on a GPU bring down is rank and cost with these weights.
        selection: see `Selection`; on a GPU.
        orbits: one of `ORBITS`. Where they stay whole, an orbit of six terms is never made one of three or a pair of
            cubes: each such step lowers the rank, but smaller orbits flip with few others and cubes with none.
    """

    plus_after: int = 5_000
    margin: int = 2
    restart_after: int = 40_000_000
    trap: int = 2_000
    trap_rank: int = 0
    chance: float = 1.0
    full: int = -1
    nonzeros: int = ANY_NONZEROS
    keep: int = 0
    cost: str = ""
    rank_weight: int = 1
    cost_weight: int = 0
    selection: Selection = NO_SELECTION
    orbits: str = "any"

    @property
    def guarded(self) -> bool:
        """Whether flips must be looked at before they are made, on a processor."""
        return self.chance < 1 or self.full >= 0 or self.nonzeros < ANY_NONZEROS

    @property
    def numbers(self) -> PolicyNumbers:
        """What the compiled walk of a processor reads."""
        return PolicyNumbers(self.plus_after, self.margin, self.restart_after, self.trap, self.full)

    def score(self, rank: int, cost: int = 0) -> int:
        """The number that walks on a GPU bring down."""
        return self.rank_weight * rank + self.cost_weight * cost

    def checked(self) -> Policy:
        """Itself.

        Raises:
            PlanError: a setting that means nothing.
        """
        if self.cost not in COSTS:
            raise PlanError(f"a term has no cost {self.cost!r}; choose full or nonzeros")
        if self.orbits not in ORBITS:
            raise PlanError(f"orbits {self.orbits!r} are not known; choose any or whole")
        if min(self.plus_after, self.restart_after, self.rank_weight) < 1 or min(self.margin, self.cost_weight) < 0:
            raise PlanError("plus_after, restart_after and rank_weight must be at least 1, margin and cost_weight 0")
        if not 0 <= self.chance <= 1 or not all(0 <= share <= 1 for share in self.selection[1:3]):
            raise PlanError("a chance and the shares of a selection are between 0 and 1")
        if self.selection.islands < 1:
            raise PlanError("a selection has at least 1 island")
        return self


POLICY_FIELDS = tuple(field.name for field in fields(Policy))

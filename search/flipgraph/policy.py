"""Policies of walks: the steps before a plus or a restart, bounds on flips, and selection among walkers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

from ...errors import PlanError

MISS_LIMIT = 40
"""Number of consecutive misses after which active slots are assumed to share buckets but no values; on a GPU a miss is
a draw of a factor without active slots."""

LONGEST = 1 << 30
"""The largest `restart_after` of walks on a GPU."""

PLUS_TRIES = 16
"""Maximum number of pairs that a plus draws."""

ANY_NONZEROS = 64
"""Maximum number of nonzeros of any factor: no limit."""

COSTS = ("", "full")
"""Costs of a term in addition to the rank: none, or 1 if it is a full product."""

ORBITS = ("any", "whole")
"""Orbits of a walk with cyclic shift and reversal: of any size, or no reduction of orbits of six terms."""

WHOLE_REFUSED = "whole orbits are those of walks flip-c3z2 and flip-z2: leave orbits out, or take one of them"


class Selection(NamedTuple):
    """Selection: every `every` launches (0: never) the worst share `worst` of the walkers is replaced by copies of
    random members of the best share `best`.

    It is applied in each of `islands` separately: a population ends as the offspring of one walker, and
    only some schemes of a rank lead to larger formats.
    """

    every: int = 0
    worst: float = 0.0
    best: float = 0.0
    islands: int = 1


NO_SELECTION = Selection()
"""No selection: independent walkers."""


class PolicyNumbers(NamedTuple):
    """The numbers of a policy that the compiled walk of a processor uses."""

    plus_after: int
    margin: int
    restart_after: int
    trap: int
    full: int


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Parameters of a walk: steps (one draw each) before a plus or a restart, bounds and selection.

    Attributes:
        plus_after: steps without a plus or a new best after which the walk makes a plus.
        margin: a plus may raise the rank to at most this much above the walk's best.
        restart_after: steps without a new best after which the walk returns to its start.
        trap: how often a walk on a processor may run out of flips without a new best before it returns to its start.
        trap_rank: at this rank or below, a walk on a GPU without flips returns to its start; above it makes a plus.
        chance: probability of a flip that raises the cost by one (by default: adds one full product); its n-th power
            for n (Metropolis).
        full: each full product beyond this counts as one rank more on a processor, and schemes with more are
            never finds; below 0, full products only decide between schemes of the same rank.
        nonzeros: maximum number of nonzero coefficients of a factor.
        keep: number of terms at the beginning of the start that remain unchanged.
        cost: one of `COSTS`, for walks on a GPU.
        rank_weight, cost_weight: weights of rank and cost in the score that walks on a GPU minimise.
        selection: see `Selection`; on a GPU.
        orbits: one of `ORBITS`. With `whole`, an orbit of six terms is never replaced by one of three or a pair of
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
        """True if flips on a processor must be checked by the guard."""
        return self.chance < 1 or self.full >= 0 or self.nonzeros < ANY_NONZEROS

    @property
    def numbers(self) -> PolicyNumbers:
        """The numbers for the compiled walk of a processor."""
        return PolicyNumbers(self.plus_after, self.margin, self.restart_after, self.trap, self.full)

    def checked(self) -> Policy:
        """Check the policy and return it.

        Raises:
            PlanError: a setting is invalid.
        """
        if self.cost not in COSTS:
            raise PlanError(f"a term has no cost {self.cost!r}: choose full")
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

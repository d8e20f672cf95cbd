"""Sessions of runs on GPUs: the walks of `lcma search --device cuda`."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from ....errors import PlanError
from ...runs.distinct import DistinctPool
from ...runs.snapshot import Arrays, Checkpointed
from ...terms.packed import PackedTerms, Vector
from ...terms.ternary import TernaryTerms
from ..policy import ANY_NONZEROS
from ..walkers import Walks, WalkTerms
from .fleet import Fleet, from_many_roots
from .layout import gpu_walk

TAKEN = 256
"""Maximum number of walkers whose terms are collected after a round: copying and certifying them takes milliseconds."""

FIRST = 1 << 10
"""Weight of the rank relative to full products if no number of full products is wanted."""


class CudaSession(Checkpointed):
    """The walks of a run on GPUs (`device` "cpu": their twins); see `runs.engine.Session`.

    Ranks are computed from the lowest score, the only quantity that a biased walk tracks: with a bound on full
    products, a walk that reaches a rank by its score has that rank and no more full products, or one of the two
    is lower to compensate for the other; without a bound, full products decide between equal ranks.

    Raises:
        PlanError: there is no GPU, the walk or its policy does not run on GPUs, or a start does not fit.
    """

    STATE = ("ranks", "lowest", "_rewound")

    def __init__(self, of: Walks, device: str = "cuda") -> None:
        policy = of.policy
        self._kind: Any = TernaryTerms if gpu_walk(of.walk).kind is TernaryTerms else PackedTerms
        if policy.nonzeros < ANY_NONZEROS or policy.keep:
            raise PlanError("a GPU walk bounds no nonzeros and keeps no products: take --device cpu")
        if policy.full >= 0 and policy.cost != "full":
            raise PlanError(f"walk {of.walk!r} counts no full products on a GPU: take flip-half")
        if policy.cost == "full" and policy.full < 0:
            policy = replace(policy, rank_weight=FIRST, cost_weight=1)  # the rank first, then full products
        self._weight = policy.rank_weight
        self._rest = policy.cost_weight * policy.full if policy.full >= 0 else policy.rank_weight - 1
        schemes, seed = [terms.to_scheme() for terms in of.starts], of.seed + (of.first << 32)
        self._fleet = Fleet(schemes, policy, seed=seed, walkers=of.walkers or None, walk=of.walk, device=device)
        self.walkers, self._start_ranks = self._fleet.walkers, np.array([scheme.rank for scheme in schemes])
        self._rewound = np.zeros(self.walkers, dtype=bool)
        self.ranks = self._ranks_by_score()
        self.lowest = self.ranks.copy()

    def _ranks_by_score(self) -> Vector:
        """Return the ranks of scores: at most r if the score is at most that of rank r and the wanted full products."""
        score = self._fleet.score.astype(np.int64)
        # Avoid the division where possible: of 70,000 numbers it takes a hundredth of a round.
        return score - self._rest if self._weight == 1 else -((self._rest - score) // self._weight)

    @property
    def flips(self) -> int:
        return self._fleet.flips

    def advance(self, goals: Vector, steps: int, executor: Executor | None) -> None:
        """Run one round; the executor is ignored.

        Raises:
            DeviceLostError: a GPU stopped responding; the run can be resumed from its last checkpoint.
        """
        self._rewound[:] = False
        self._fleet.launch(steps, (self._weight * goals + self._rest).astype(np.int32))
        self.ranks = self._ranks_by_score()
        self.lowest = np.minimum(self.lowest, self.ranks)

    def chosen(self, walks: Vector) -> Vector:
        """Select up to TAKEN walks, from as many lines of descent as possible."""
        return from_many_roots(walks, self._fleet.roots)[:TAKEN]

    def terms(self, walks: Vector) -> list[WalkTerms]:
        fleet = self._fleet
        schemes = (fleet.first_start(one) if self._rewound[one] else fleet.scheme(one) for one in walks.tolist())
        return [self._kind.from_scheme(scheme) for scheme in schemes]

    def steps(self, walks: Vector) -> Vector:
        return self._fleet.steps[walks]

    def rewind(self, walks: Vector) -> None:
        if len(walks):
            self._fleet.rewind(walks)
            self.ranks[walks] = self._start_ranks[walks % len(self._start_ranks)]
            self._rewound[walks] = True

    def widen(self, pool: DistinctPool, goal: int, count: int, launches: int) -> None:
        """Add schemes to a pool that walks from its members reach at the same rank, through higher ranks."""
        if self._fleet.policy.cost == "":
            self._fleet.widen(pool, goal, count, launches=launches)

    def to_arrays(self) -> Arrays:
        return super().to_arrays() | self._fleet.to_arrays()

    def take_arrays(self, arrays: Arrays) -> None:
        super().take_arrays(arrays)
        self._fleet.take_arrays(arrays)

"""Large neighbourhood search: repeated recombination of the products of the best scheme and of walks near it.

Source: the method of the ECA and RXTX authors, who recombine products that a search has sampled; here
walks of flips are the sampler.
"""

from __future__ import annotations

from concurrent.futures import Executor
from fractions import Fraction
from functools import partial

from ...errors import PlanError
from ...schemes_db import Scheme
from ..cpsat.recombine import MAX_PRODUCTS, distinct_products, recombine
from ..slp.anneal import detour
from ..terms.ternary import TernaryTerms
from .folder import Checkpoint
from .objectives import score_of
from .search_run import SearchRun
from .snapshot import Arrays

MODEL_SECONDS = 5.0
"""Deterministic seconds of the solver in a round."""


class Neighbourhoods(SearchRun):
    """A large neighbourhood search in progress; the cost of its incumbent is F + H/2.

    In a round, walks leave the incumbent and return to its rank; CP-SAT finds the cheapest scheme on all their
    products, which replaces the incumbent if it is at least as cheap.

    Raises:
        PlanError: the start has too many products for a model, or is not ternary.
    """

    _terms: TernaryTerms

    def _enter(self, stage: int) -> None:
        start = self.config.terms
        if not isinstance(start, TernaryTerms) or start.rank > MAX_PRODUCTS:
            raise PlanError(f"the start has {start.rank} products: a model takes {MAX_PRODUCTS}, ternary ones")
        self._become(start)
        detour(start, self.config.seed, 0, 0)  # compiles, so that the time limit covers the search only

    def _become(self, terms: TernaryTerms) -> None:
        self._terms, self._incumbent = terms, terms.to_scheme()
        self._cost = score_of("cost", self._incumbent)

    def advance(self, executor: Executor | None) -> None:
        config = self.config
        walk = partial(detour, self._terms, config.seed, steps=config.steps)
        places = range(self._round * config.walks, (self._round + 1) * config.walks)
        pool = [self._incumbent]
        for terms in map(walk, places) if executor is None else executor.map(walk, places):
            walked = terms.to_scheme()
            if len(distinct_products([*pool, walked])) <= MAX_PRODUCTS:
                pool.append(walked)
        solution = recombine(pool, seconds=MODEL_SECONDS, seed=config.seed)
        if solution.interrupted:
            raise KeyboardInterrupt  # the round is repeated by `resume`: its solution would depend on the time
        found = solution.scheme
        cost = score_of("cost", found)
        self._round += 1
        if cost <= self._cost and found.digest != self._incumbent.digest:
            self._gain(found, cost)
            self._become(TernaryTerms.from_scheme(found))
        self.save(due=True)

    def _gain(self, scheme: Scheme, cost: Fraction) -> None:
        """Record a scheme at least as good as the incumbent; it is a find if it has the rank wanted, or, without one,
        is better."""
        config = self.config
        if better := cost < self._cost or scheme.rank < self._lowest:
            self._gained = self.seconds
        self._lowest = min(self._lowest, scheme.rank)
        wanted = scheme.rank <= config.rank if config.rank is not None else better
        if wanted and scheme.digest not in self._seen:
            self._found(scheme, 0, relation="large neighbourhood search")

    def _arrays(self) -> Arrays:
        return {"incumbent": self._terms.words}

    def _take_up(self, checkpoint: Checkpoint) -> None:
        self._become(TernaryTerms(self.config.final_target, checkpoint.arrays["incumbent"]))

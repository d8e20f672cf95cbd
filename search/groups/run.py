"""A search for schemes with many groups of products, in rounds of walks."""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from ...errors import PlanError
from ..elite_pool import ElitePool
from ..runs.folder import Checkpoint
from ..runs.search_run import SearchRun
from ..runs.snapshot import Arrays
from ..terms.ternary import TernaryTerms
from .product_rank import POOL, inner_format
from .walk import walk


class GroupRun(SearchRun):
    """A search for groups in progress: every find has a product of lower rank than those before.

    Walk `i` starts from a random scheme of the best so far, and stays at ranks up to that of the start plus
    `i` modulo the margin of the policy plus 1.

    Raises:
        PlanError: the start is not ternary or has a factor of more than 32 blocks, or no group saves anything.
    """

    _pool: ElitePool

    def _enter(self, stage: int) -> None:
        config, start = self.config, self.config.terms
        if not isinstance(start, TernaryTerms):
            raise PlanError("walks for groups start from ternary schemes over Z")
        self._inner = inner_format(config.objective)
        self._pool = ElitePool(POOL)
        self._pool.offer(self._inner.cost(start), start)
        walk(start, self._inner, start.rank, 0, config.seed, 0)  # compiles, so that the time limit covers walks only

    def advance(self, executor: Executor | None) -> None:
        config = self.config
        margin = config.setting(0).policy.margin

        def one(index: int) -> TernaryTerms:
            rng = np.random.default_rng((config.seed, index))
            return walk(
                self._pool.draw(rng), self._inner, self._lowest + index % (margin + 1), config.steps, config.seed, index
            )

        places = range(self._round * config.walks, (self._round + 1) * config.walks)
        found = list(map(one, places) if executor is None else executor.map(one, places))
        self._round += 1
        for index, terms in zip(places, found, strict=True):
            self._lowest = min(self._lowest, terms.rank)
            if self._pool.offer(self._inner.cost(terms), terms):
                self._gained = self.seconds
                self._found(terms.to_scheme(), index, f", walk {index}")
        self.save(due=True)

    def _arrays(self) -> Arrays:
        return {f"words {place}": terms.words for place, terms in enumerate(self._pool)}

    def _take_up(self, checkpoint: Checkpoint) -> None:
        self._pool = ElitePool(POOL)
        for name in sorted(checkpoint.arrays):
            terms = TernaryTerms(self.config.final_target, checkpoint.arrays[name])
            self._pool.offer(self._inner.cost(terms), terms)

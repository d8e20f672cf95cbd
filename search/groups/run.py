"""A search for schemes with many groups of products, in rounds of walks."""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from ...errors import PlanError
from ...verify import certify
from ..runs.certify_find import Ancestry, provenance_of
from ..runs.folder import Checkpoint
from ..runs.record import Record
from ..runs.result import Find
from ..runs.search_run import SearchRun
from ..runs.snapshot import Arrays
from ..terms.ternary import TernaryTerms
from .product_rank import inner_format
from .walk import walk

POOL = 16
"""Number of best schemes that walks start from."""


class GroupRun(SearchRun):
    """A search for groups in progress: every find has a product of lower rank than those before.

    Walk `i` starts from a random scheme of the best so far, and stays at ranks up to that of the start plus
    `i` modulo the margin of the policy plus 1.

    Raises:
        PlanError: the start is not ternary or has a factor of more than 32 blocks, or no group saves anything.
    """

    _pool: list[tuple[int, str, TernaryTerms]]

    def _enter(self, stage: int) -> None:
        config, start = self.config, self.config.terms
        if not isinstance(start, TernaryTerms):
            raise PlanError("walks for groups start from ternary schemes over Z")
        self._inner = inner_format(config.objective)
        self._pool = []
        self._offer(start)
        walk(start, self._inner, start.rank, 0, config.seed, 0)  # compiles, so that the time limit covers walks only

    def _offer(self, terms: TernaryTerms) -> bool:
        """Add a scheme to the pool if it is new and among the best; return whether it is the best."""
        scheme = terms.to_scheme()
        entry = (self._inner.product_rank(scheme), scheme.digest, terms)
        if any(known[1] == entry[1] for known in self._pool):
            return False
        best = not self._pool or entry[0] < self._pool[0][0]
        self._pool = sorted([*self._pool, entry], key=lambda one: (one[0], one[2].rank, one[1]))[:POOL]
        return best

    def advance(self, executor: Executor | None) -> None:
        """Run one round of walks from schemes of the pool, and collect what is better than all before."""
        config = self.config
        margin = config.setting(0).policy.margin

        def one(index: int) -> TernaryTerms:
            rng = np.random.default_rng((config.seed, index))
            start = self._pool[int(rng.integers(len(self._pool)))][2]
            return walk(start, self._inner, self._lowest + index % (margin + 1), config.steps, config.seed, index)

        places = range(self._round * config.walks, (self._round + 1) * config.walks)
        found = list(map(one, places) if executor is None else executor.map(one, places))
        self._round += 1
        for index, terms in zip(places, found, strict=True):
            self._lowest = min(self._lowest, terms.rank)
            if self._offer(terms):
                self._gained = self.seconds
                self._take(index, terms)
        self.save(due=True)

    def _take(self, index: int, terms: TernaryTerms) -> None:
        """Certify and record a scheme."""
        config = self.config
        ancestry = Ancestry((config.start.digest,) if config.start else ())
        scheme = terms.to_scheme(provenance_of(config, ancestry, f"round {self._round}, walk {index}", self.seconds))
        certificate = certify(scheme)
        record = Record(self._round, index, Find(scheme, certificate, scheme, certificate), self._stage)
        self._keep(record)
        self._record([record])

    def _arrays(self) -> Arrays:
        return {f"words {place}": terms.words for place, (_, _, terms) in enumerate(self._pool)}

    def _take_up(self, checkpoint: Checkpoint) -> None:
        self._pool = []
        for name in sorted(checkpoint.arrays):
            self._offer(TernaryTerms(self.config.final_target, checkpoint.arrays[name]))

    @property
    def _flips(self) -> int:
        """Always 0: walks do not count their flips."""
        return 0

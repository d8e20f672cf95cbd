"""Annealing of arrangements until they span all entries of C: the schemes that they yield, for runs and turns."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from operator import methodcaller
from typing import TYPE_CHECKING

import numpy as np

from ...errors import PlanError
from ...schemes_db import Scheme, Target
from ...schemes_db.composition import oriented
from ..runs.snapshot import Arrays, Checkpointed
from ..seeds import splitmix
from ..terms.words import HALF_BITS, Words, bits_of_words
from ..turn_fleet import FoundFleet
from .arrangement import Arrangement, IntArray, scheme_of, with_smaller_coefficients

if TYPE_CHECKING:
    from .kernel import Candidates
    from .span import InnerProducts, Span

STEPS_PER_ENTRY = 16_000
"""Steps of an annealing for every entry of C: 10 s at 2x8x8."""

HOT, COLD = 0.14, 0.06
"""First and last temperature, where a loss of one dimension is e^(1/T) = 1300 and 2e7 times less likely than none. Of
annealings at 2x8x8:97, 14 of 16 arrived, after 4.5 s on average; at a constant 0.05, 0.07, 0.085 and 0.1 it took
5 to 7 s. At 2x8x8:98 temperatures from 0.3 to 0.08 took four times as long as a constant 0.1 or 0.12."""

INDEX_STEPS, WEIGHT_STEPS, MANY_ENTRIES, INDEX_BOUND = 20_000, 100_000, 100, 5.0
"""Steps of a round of replacements that lower the determinant to 1; steps a temperature that make the inverse small;
entries of C above which MANY holds, not FEW; and the largest log |det| after a round, for each round that is left."""

FEW = 1, 0.5, (0.1,)
"""Rounds, their temperature, and the temperatures that make the inverse small. Two thirds of the determinants at
2x10x10:152 and 2x8x8:98 become 1, mostly within 2000 steps; temperatures from 0.25 to 4 differ little. The largest
coefficient of a scheme 2x8x8:98 fell from 210 to 30 in 3000 steps and to 6 in 60,000, which take a second."""

MANY = 16, 2.0, (1.5, 0.9, 0.5, 0.3, 0.17, 0.1)
"""As FEW. In 120,000 steps at 0.2, 0.5 or 6 none of five arrangements 2x12x12:220 and 2x11x15:252 came below log |det|
12, at 2 two did. The largest coefficient of a 2x10x10:151 was 19 after 500,000 steps at 0.1, and 6 from 1 to 0.1."""

CONVERSION = 50_000
"""Steps that the construction of a scheme counts as: it takes about as long."""

MOST_ROWS = 16
"""Maximum rows of A and columns of B: with more, an annealing takes minutes."""


def sides(target: Target) -> tuple[int, int]:
    """Return the two sides other than 2 of a format with a side of 2, in increasing order.

    Raises:
        PlanError: the target is no such format, or too large.
    """
    shape = sorted(target.shape)
    if not target.is_general or 2 not in shape or shape[0] < 2:
        raise PlanError(f"triples are for full products with a side of 2 and no smaller one, not for {target}")
    shape.remove(2)
    p, n = shape
    if n > MOST_ROWS:
        raise PlanError(f"triples are for 2 x p x n with p and n up to {MOST_ROWS}, not for {target}")
    return p, n


def has_triples(target: Target) -> bool:
    """Return whether a target is a full product with a side of 2 that is not too large."""
    try:
        sides(target)
    except PlanError:
        return False
    return True


def usual_rank(target: Target) -> int:
    """Return the rank (3 p n + max(p, n)) / 2, rounded up, of the schemes of Hopcroft and Kerr (1971) for 2 x p x n."""
    p, n = sides(target)
    return (3 * p * n + n + 1) // 2


def least_rank(target: Target) -> int:
    """Return the rank p n + max(p, n) below which no arrangement has an inner product for every column of B."""
    p, n = sides(target)
    return p * n + n


class Annealer(Checkpointed):
    """Anneals arrangements for a rank, one after the other, each from random inner products.

    Vectors have entries -1, 0 and 1, and triples hold with signs. Independence is that modulo 2, so that a complete
    arrangement has a scheme over the rationals with odd denominators; inner products are replaced until it is over the
    integers (`kernel.lower`).

    Args:
        target: a full product with a side of 2.
        rank: the rank wanted.
        seed, index: the sequence depends on these only.

    Raises:
        PlanError: the target does not fit, or the rank is too low for any arrangement.
    """

    STATE = ("_state", "_rows", "_cols", "_variants", "_step")

    def __init__(self, target: Target, rank: int, seed: int, index: int) -> None:
        self.target, self._shape = target, sides(target)
        self._state = np.array([splitmix(seed, index)], dtype=np.uint64)
        self.aim(rank)

    def aim(self, rank: int) -> None:
        """Begin anew with another rank wanted.

        Raises:
            PlanError: there are fewer inner products than rows or columns, or the naive scheme has the rank.
        """
        p, n = self._shape
        count, lowest, naive = rank - p * n, least_rank(self.target), len(self.target.terms)
        if rank < lowest:
            raise PlanError(f"rank {rank} of {self.target} leaves too few inner products: ask for {lowest} or more")
        if rank >= naive:
            raise PlanError(f"the naive scheme of {self.target} has rank {naive} already: ask for less than that")
        self._rows, self._cols = np.zeros(count, dtype=np.uint64), np.zeros(count, dtype=np.uint64)
        self._variants = np.zeros(count, dtype=np.int64)
        self._step = 0

    def advance(self, steps: int) -> list[Scheme]:
        """Anneal for about `steps` steps; return the schemes that were found, unchecked and without provenance."""
        from .kernel import anneal, candidates
        from .span import InnerProducts, randomize, work_space

        p, n = self._shape
        length = STEPS_PER_ENTRY * p * n
        products = InnerProducts(self._rows, self._cols, self._variants, p, n)
        span, among = work_space(p, n), candidates()
        found = []
        left = steps
        while left > 0:
            if self._step == 0:
                randomize(self._state, products)
            made, reached = anneal(
                self._state, products, span, among, self._step, min(left, length - self._step), length, HOT, COLD
            )
            self._step += made
            left -= max(made, 1)
            if reached == p * n:
                left -= CONVERSION
                scheme = scheme_of(self.arrangement) if self._make_integral(products, span, among) else None
                if scheme is not None and scheme.rank <= self.arrangement.rank:
                    found.append(oriented(with_smaller_coefficients(scheme), self.target.shape))
            if reached == p * n or self._step >= length:
                self._step = 0
        return found

    def _make_integral(self, products: InnerProducts, span: Span, among: Candidates) -> bool:
        """Replace inner products until the forms span all integral ones; return whether they do."""
        from .kernel import lower

        matrix = np.zeros((products.p * products.n,) * 2)
        work = (self._state, products, span, among, matrix)
        rounds, index_temperature, weight_temperatures = MANY if len(matrix) > MANY_ENTRIES else FEW
        for left in reversed(range(rounds)):
            _, index = lower(*work, False, INDEX_STEPS, index_temperature, np.log(2.0))
            if index > max(INDEX_BOUND * left, np.log(2.0)):
                return False
        for temperature in weight_temperatures:
            lower(*work, True, WEIGHT_STEPS, temperature, 0.0)
        return True

    @property
    def arrangement(self) -> Arrangement:
        """The inner products now."""
        p, n = self._shape
        return Arrangement(_entries(self._rows, p), _entries(self._cols, n), self._variants.copy())


class TripleFleet(FoundFleet):
    """Annealers of one format; with `descends` all aim below the lowest find.

    Args:
        rank: the rank to aim at.

    Raises:
        PlanError: the target has no side of 2, or the rank is too low.
    """

    STATE = ("_least",)
    STEPS, RELATION, REMARK = 100_000, "annealing of Strassen triples", "annealing"

    def __init__(self, target: Target, rank: int, *, seed: int, walkers: int, descends: bool = True) -> None:
        super().__init__(target, walkers)
        self._annealers = [Annealer(target, rank, seed, index) for index in range(walkers)]
        self._descends, self._least = descends, len(target.terms)

    def find(self, steps: int, executor: Executor | None) -> Iterator[tuple[int, Scheme]]:
        mapped = list((map if executor is None else executor.map)(methodcaller("advance", steps), self._annealers))
        for number, scheme in ((number, scheme) for number, schemes in enumerate(mapped) for scheme in schemes):
            if not self._descends or scheme.rank < self._least:
                yield number, scheme
                if self._descends:
                    self._least = scheme.rank
                    for annealer in self._annealers:
                        annealer.aim(max(scheme.rank - 1, least_rank(self.target)))

    def to_arrays(self) -> Arrays:
        every = {f"{name} {i}": a for i, one in enumerate(self._annealers) for name, a in one.to_arrays().items()}
        return super().to_arrays() | every

    def take_arrays(self, arrays: Arrays) -> None:
        super().take_arrays(arrays)
        for i, one in enumerate(self._annealers):
            one.take_arrays({name: arrays[f"{name} {i}"] for name in one.STATE})


def _entries(words: Words, length: int) -> IntArray:
    """Return (N, length) entries of vectors in words, see `span`."""
    return bits_of_words(words, length) - bits_of_words(words >> np.uint64(HALF_BITS), length)

"""Annealing of arrangements until they span all entries of C: the schemes that they yield, for runs and turns."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from ...errors import PlanError
from ...schemes_db import Scheme, Target
from ...schemes_db.composition import oriented
from ..flipgraph.gpu.device import one_gpu
from ..runs.snapshot import Arrays, Checkpointed
from ..seeds import splitmix
from ..terms.words import HALF_BITS, Words, bits_of_words
from ..turn_fleet import FoundFleet
from .arrangement import Arrangement, IntArray, scheme_of, with_smaller_coefficients

if TYPE_CHECKING:
    from .dual import Dual
    from .gpu import OnGpu
    from .kernel import Candidates
    from .span import InnerProducts, Span

    Found = tuple[Words, Words, IntArray]
    Work = tuple[Words, InnerProducts, Span, Candidates, Dual]

STEPS_PER_ENTRY = 16_000
"""Steps of an annealing for every entry of C: 10 s at 2x8x8."""

COOLING = 0.14, 0.06, 0.3
"""First and last temperature of the dimension, where a loss of one is e^(1/T) = 1300 and 2e7 times less likely than
none; and that of log |det| of the forms. With the last in the energy a 2x12x12:218 over the integers took a core 15 to
40 s at 0.15 to 0.5 alike; annealed modulo 2 alone, and its determinant lowered to 1 then, 100 s."""

WEIGHT_STEPS, MANY_ENTRIES = 100_000, 100
"""Steps a temperature that make the dual basis small; entries of C above which MANY holds, not FEW."""

FEW, MANY = (0.1,), (1.5, 0.9, 0.5, 0.3, 0.17, 0.1)
"""Temperatures of the logarithm of the sum of its magnitudes. The largest coefficient of a 2x10x10:151 was 19 after
500,000 steps at 0.1, and 6 from 1 to 0.1."""

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


def schedule(target: Target) -> int:
    """Return the steps of an annealing."""
    p, n = sides(target)
    return STEPS_PER_ENTRY * p * n


def least_rank(target: Target) -> int:
    """Return the rank p n + max(p, n) below which no arrangement has an inner product for every column of B."""
    p, n = sides(target)
    return p * n + n


class Annealer(Checkpointed):
    """Anneals arrangements for a rank, one after the other, each from random inner products.

    Vectors have entries -1, 0 and 1, and triples hold with signs. Independence is that modulo 2; of the forms that are
    independent the determinant is lowered to 1 or -1 at the same time, so that schemes are over the integers.

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
        from .kernel import ROUNDING, anneal
        from .span import randomize

        work = self._work()
        length, found, left = schedule(self.target), [], steps
        while left > 0:
            if self._step == 0:
                randomize(*work[:2])
            made, lacks, index = anneal(*work, self._step, min(left, length - self._step), length, COOLING)
            self._step += made
            left -= max(made, 1)
            done = lacks == 0 and index < ROUNDING
            if done:
                left -= CONVERSION
                found += self._schemes(work)
            if done or self._step >= length:
                self._step = 0
        return found

    def finish(self, found: Found) -> list[Scheme]:
        """Return the scheme of inner products that span all over the integers, none if that fails; the next begin anew.

        Further steps lower the sum of the magnitudes of their dual basis first, see `kernel.lighten`.
        """
        self._rows, self._cols, self._variants = found
        self._step = 0
        return self._schemes(self._work())

    def _work(self) -> Work:
        """Return the arguments of compiled functions, on this annealer's inner products."""
        from .dual import dual_space
        from .kernel import candidates
        from .span import InnerProducts, work_space

        p, n = self._shape
        products = InnerProducts(self._rows, self._cols, self._variants, p, n)
        return self._state, products, work_space(p, n, len(self._rows)), candidates(), dual_space(p * n)

    def _schemes(self, work: Work) -> list[Scheme]:
        """See `finish`."""
        from .kernel import lighten

        for heat in MANY if len(work[-1].values) > MANY_ENTRIES else FEW:
            lighten(*work, WEIGHT_STEPS, heat)
        scheme = scheme_of(self.arrangement)
        if scheme is None or scheme.rank > self.arrangement.rank:
            return []
        return [oriented(with_smaller_coefficients(scheme), self.target.shape)]

    @property
    def arrangement(self) -> Arrangement:
        """The inner products now."""
        p, n = self._shape
        return Arrangement(_entries(self._rows, p), _entries(self._cols, n), self._variants.copy())


class TripleFleet(FoundFleet):
    """Annealers of one format; with `descends` all aim below the lowest find.

    On a GPU there are as many annealings as it holds, and a round makes schemes of `walkers` that arrived.

    Args:
        rank: the rank to aim at.
        device: "cpu", or "cuda".

    Raises:
        PlanError: the target has no side of 2, the rank is too low, or there is no GPU.
    """

    STATE = ("_least", "_begun")
    STEPS, RELATION, REMARK = 100_000, "annealing of Strassen triples", "annealing"
    GPU_STEPS = 4_000
    """Steps of a launch on a GPU, of some seconds."""

    def __init__(
        self, target: Target, rank: int, *, seed: int, walkers: int, descends: bool = True, device: str = "cpu"
    ) -> None:
        super().__init__(target, walkers)
        self._annealers = [Annealer(target, rank, seed, index) for index in range(walkers)]
        self._descends, self._least = descends, len(target.terms)
        self._gpu, self._seed, self._begun = None if device == "cpu" else one_gpu(device), seed, 0
        self._chains: OnGpu | None = None

    def find(self, steps: int, executor: Executor | None) -> Iterator[tuple[int, Scheme]]:
        each = map if executor is None else executor.map
        if self._gpu is None:
            mapped = list(each(Annealer.advance, self._annealers, repeat(steps)))
        else:
            mapped = list(each(Annealer.finish, self._annealers, self._arrived(self._gpu)))
        for number, scheme in ((number, scheme) for number, schemes in enumerate(mapped) for scheme in schemes):
            if not self._descends or scheme.rank < self._least:
                yield number, scheme
                if self._descends:
                    self._least, self._chains = scheme.rank, None
                    for annealer in self._annealers:
                        annealer.aim(max(scheme.rank - 1, least_rank(self.target)))

    def _arrived(self, gpu: int) -> list[Found]:
        """Anneal on the GPU; return inner products that arrived, at most as many as there are annealers."""
        from .gpu import OnGpu
        from .kernel import ROUNDING

        if self._chains is None:
            self._begun += 1
            count = len(self._annealers[0].arrangement.variants)
            self._chains = OnGpu(gpu, *sides(self.target), count, (self._seed, self._begun))
        length = schedule(self.target)
        self._chains.advance(self.GPU_STEPS, length, COOLING)
        return self._chains.taken(ROUNDING, length)[: self.walkers]

    def to_arrays(self) -> Arrays:
        every = {f"{name} {i}": a for i, one in enumerate(self._annealers) for name, a in one.to_arrays().items()}
        return super().to_arrays() | every

    def take_arrays(self, arrays: Arrays) -> None:
        super().take_arrays(arrays)
        self._chains = None
        for i, one in enumerate(self._annealers):
            one.take_arrays({name: arrays[f"{name} {i}"] for name in one.STATE})


def _entries(words: Words, length: int) -> IntArray:
    """Return (N, length) entries of vectors in words, see `span`."""
    return bits_of_words(words, length) - bits_of_words(words >> np.uint64(HALF_BITS), length)

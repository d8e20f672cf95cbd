"""Walks for groups of products: searches by that objective, and turns of `improve` on products with an inner format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from itertools import permutations, product
from typing import Any, ClassVar

import numpy as np

from ...errors import PlanError
from ...schemes_db import Scheme, Target
from ...schemes_db.catalog import Catalog
from ...schemes_db.closure import OuterScheme
from ...schemes_db.composed_ranks import BOARD_SIDE
from ...schemes_db.composition import best_composition, build, oriented
from ...schemes_db.uneven import Shape, inner_products, uneven_product
from ..elite_pool import ElitePool
from ..flipgraph.gpu.device import one_gpu
from ..runs.snapshot import Arrays
from ..terms.ternary import TernaryTerms
from ..terms.words import HALF_BITS
from ..turn_fleet import FoundFleet
from .product_rank import InnerFormat, board_ranks

ROOM = 2
"""Default of `room`."""


def splits(shape: Shape) -> Iterator[tuple[Shape, Shape]]:
    """Yield the formats of an outer and an inner scheme whose product has a format in some order of its sides.

    Outer ones have two sides of 2 or more, and factors of at most 32 blocks, as the walks take them.
    """
    for m, k, n in dict.fromkeys(permutations(shape)):
        for a, b, c in product(*([part for part in range(1, side + 1) if side % part == 0] for side in (m, k, n))):
            smallest, middle, largest = sorted((a, b, c))
            if smallest > 1 and middle * largest <= HALF_BITS and (a, b, c) != (m, k, n):
                yield (a, b, c), (m // a, k // b, n // c)


def saved_by_a_pair(shape: Shape) -> int:
    """Return how many products a pair of inner products of a format saves at most, 0 if none does."""
    return int(InnerFormat(shape).table(2)[0, :, 2].max())


class GroupFleet(FoundFleet):
    """Walks that lower the rank of the product of a scheme and an inner format.

    A walk starts from a random scheme of the best so far. Walk `i` stays at ranks up to the lowest so far plus `i`
    modulo `room`.

    Args:
        target: the format of the product.
        starts: ternary schemes of the outer format, one or more.
        inner: the format of the inner products.
        device: "cpu", or "cuda", where there are as many walks as the GPU holds.

    Raises:
        PlanError: a start is not ternary or has a factor of more than 32 blocks, or there is no GPU.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_walks", "_rank")
    STEPS, RELATION = 300_000, "walk for groups of products, and the product with an inner format"
    FINDS, REMARK = "flip walk", "walk"
    POOL = 16
    """Number of best schemes that walks start from."""

    def __init__(
        self,
        target: Target,
        starts: Sequence[Scheme],
        inner: InnerFormat,
        *,
        seed: int,
        walkers: int,
        room: int = ROOM,
        device: str = "cpu",
    ) -> None:
        from .walk import state_of, walk

        super().__init__(target, walkers)
        self._gpu = None if device == "cpu" else one_gpu(device)
        self._inner, self._seed, self._room, self._walks = inner, seed, room, 0
        self._outer, self._pool = starts[0].target, ElitePool(self.POOL)
        for start in starts:
            self._offer(TernaryTerms.from_scheme(start))
        self._rank = min(start.rank for start in starts)
        first = next(iter(self._pool))
        state_of(first, inner, first.rank)  # refuses factors that are too large
        if self._gpu is None:
            walk(first, inner, self._rank, 0, seed, 0)  # compiles

    def find(self, steps: int, executor: Executor | None) -> Iterator[tuple[int, Scheme]]:
        """Yield the schemes, of the outer format, whose product with the inner format has a lower rank."""
        for number, terms in self._walked(steps, executor):
            self._rank = min(self._rank, terms.rank)
            if self._offer(terms):
                yield number, terms.to_scheme()

    def _walked(self, steps: int, executor: Executor | None) -> Iterator[tuple[int, TernaryTerms]]:
        """Yield what the walks of a round lead to, of those on a GPU the best ones only."""
        if self._gpu is not None:
            from .gpu import best_walks

            self._walks += 1
            seed = self._seed, self._walks
            yield from best_walks(self._gpu, [*self._pool], self._inner, self._rank, self._room, steps, seed)
            return

        from .walk import walk

        def one(number: int) -> TernaryTerms:
            start = self._pool.draw(np.random.default_rng((self._seed, number)))
            return walk(start, self._inner, self._rank + number % self._room, steps, self._seed, number)

        numbers = range(self._walks, self._walks + self.walkers)
        found = list((map if executor is None else executor.map)(one, numbers))
        self._walks += self.walkers
        yield from zip(numbers, found, strict=True)

    def _offer(self, terms: TernaryTerms) -> bool:
        return self._pool.offer(self._inner.cost(terms), terms)

    def made(self, scheme: Scheme) -> Scheme:
        """Return the product of a scheme and the best schemes of the catalogue for the inner products."""
        sizes, groups = self._inner.sizes(scheme.target.shape), self._inner.groups(scheme)
        with Catalog.open() as catalog:
            kept = catalog.best_ranks("Z")
            inner = [
                build(best_composition(shape, kept), shape, lambda name: catalog.find(name)[0])
                for shape in dict.fromkeys(part.shape for part in inner_products(scheme, sizes, groups))
            ]
        return oriented(uneven_product(scheme, sizes, inner, groups), self.target.shape)

    def to_arrays(self) -> Arrays:
        return super().to_arrays() | {f"words {place}": terms.words for place, terms in enumerate(self._pool)}

    def take_arrays(self, arrays: Arrays) -> None:
        super().take_arrays(arrays)
        self._pool = ElitePool(self.POOL)
        for name in sorted(arrays.keys() - set(self.STATE)):
            self._offer(TernaryTerms(self._outer, arrays[name]))


class FormatFleet(GroupFleet):
    """Walks that lower the ranks of formats up to BOARD_SIDE: of products of a scheme over blocks of two sizes.

    A round is for the blocks of a random format, random ones of them longer; what its walks lead to is then tried for
    all formats. Walks start from the starts, and from what lowered a rank.
    """

    STATE = (*GroupFleet.STATE, "_ranks")
    RELATION = "walk for the ranks of products over blocks"
    POOL = 256

    def __init__(self, target: Target, starts: Sequence[Scheme], **options: Any) -> None:
        if max(target.shape) > BOARD_SIDE:
            raise PlanError(f"formats are those of sides up to {BOARD_SIDE}: a scheme of {target} makes none of them")
        self._ranks = board_ranks().copy()
        super().__init__(target, starts, InnerFormat((1, 1, 1)), **options)

    def find(self, steps: int, executor: Executor | None) -> Iterator[tuple[int, Scheme]]:
        """Yield the schemes that lower the rank of a format."""
        rng = np.random.default_rng((self._seed, self._walks, 1))
        blocks = [divmod(int(rng.integers(count, BOARD_SIDE + 1)), count) for count in self._outer.shape]
        (m, k, n), longer = zip(*blocks, strict=True)
        lines = (rng.permutation(count) < more for count, more in zip(self._outer.shape, longer, strict=True))
        self._inner = InnerFormat((m, k, n), tuple(tuple(line.tolist()) for line in lines))
        for number, terms in self._walked(steps, executor):
            scheme = terms.to_scheme()
            if list(OuterScheme(scheme).lower(self._ranks)):
                self._offer(terms)
                yield number, scheme

    def _offer(self, terms: TernaryTerms) -> bool:
        return self._pool.offer((0,), terms)

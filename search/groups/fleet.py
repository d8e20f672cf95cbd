"""Walks for groups of products: searches by that objective, and turns of `improve` on products with an inner format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from itertools import permutations, product

import numpy as np

from ...errors import PlanError
from ...schemes_db import Scheme, Target
from ...schemes_db.catalog import Catalog
from ...schemes_db.composition import best_composition, build, oriented
from ...schemes_db.recipes import shape_text
from ...schemes_db.uneven import Shape, inner_products, uneven_product
from ..elite_pool import ElitePool
from ..runs.snapshot import Arrays
from ..terms.ternary import TernaryTerms
from ..terms.ternary_words import HALF_BITS
from ..turn_fleet import FoundFleet
from .product_rank import POOL, PREFIX, InnerFormat, inner_format
from .walk import walk

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


def inner_of(shape: Shape) -> InnerFormat:
    """Return an inner format; see `inner_format`."""
    return inner_format(PREFIX + shape_text(shape))


def saved_by_a_pair(shape: Shape) -> int:
    """Return how many products a pair of inner products of a format saves at most, 0 if none does."""
    try:
        return int(inner_of(shape).gains[:, 2].max())
    except PlanError:
        return 0


class GroupFleet(FoundFleet):
    """Walks that lower the rank of the product of a scheme and an inner format.

    A walk starts from a random scheme of the best so far. Walk `i` stays at ranks up to the lowest so far plus `i`
    modulo `room`.

    Args:
        target: the format of the product.
        starts: ternary schemes of the outer format, one or more.
        inner: the format of the inner products.

    Raises:
        PlanError: a start is not ternary or has a factor of more than 32 blocks, or no group saves anything.
    """

    STATE = ("_walks", "_rank")
    STEPS, RELATION = 300_000, "walk for groups of products, and the product with an inner format"
    FINDS, REMARK = "flip walk", "walk"

    def __init__(
        self, target: Target, starts: Sequence[Scheme], inner: Shape, *, seed: int, walkers: int, room: int = ROOM
    ) -> None:
        super().__init__(target, walkers)
        self._inner, self._seed, self._room, self._walks = inner_of(inner), seed, room, 0
        self._outer, self._pool = starts[0].target, ElitePool(POOL)
        for start in starts:
            self._offer(TernaryTerms.from_scheme(start))
        self._rank = min(start.rank for start in starts)
        walk(next(iter(self._pool)), self._inner, self._rank, 0, seed, 0)  # compiles

    def find(self, steps: int, executor: Executor | None) -> Iterator[tuple[int, Scheme]]:
        """Yield the schemes, of the outer format, whose product with the inner format has a lower rank."""

        def one(number: int) -> TernaryTerms:
            start = self._pool.draw(np.random.default_rng((self._seed, number)))
            return walk(start, self._inner, self._rank + number % self._room, steps, self._seed, number)

        numbers = range(self._walks, self._walks + self.walkers)
        found = list((map if executor is None else executor.map)(one, numbers))
        self._walks += self.walkers
        for number, terms in zip(numbers, found, strict=True):
            self._rank = min(self._rank, terms.rank)
            if self._offer(terms):
                yield number, terms.to_scheme()

    def _offer(self, terms: TernaryTerms) -> bool:
        return self._pool.offer(self._inner.cost(terms), terms)

    def made(self, scheme: Scheme) -> Scheme:
        """Return the product of a scheme and the best schemes of the catalogue for the inner products."""
        m, k, n = ((size,) * side for size, side in zip(self._inner.shape, scheme.target.shape, strict=True))
        groups = self._inner.groups(scheme)
        with Catalog.open() as catalog:
            kept = catalog.best_ranks("Z")
            inner = [
                build(best_composition(shape, kept), shape, lambda name: catalog.find(name)[0])
                for shape in dict.fromkeys(part.shape for part in inner_products(scheme, (m, k, n), groups))
            ]
        return oriented(uneven_product(scheme, (m, k, n), inner, groups), self.target.shape)

    def to_arrays(self) -> Arrays:
        return super().to_arrays() | {f"words {place}": terms.words for place, terms in enumerate(self._pool)}

    def take_arrays(self, arrays: Arrays) -> None:
        super().take_arrays(arrays)
        self._pool = ElitePool(POOL)
        for name in sorted(arrays.keys() - set(self.STATE)):
            self._offer(TernaryTerms(self._outer, arrays[name]))

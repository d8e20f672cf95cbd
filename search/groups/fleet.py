"""Walks for groups of products: searches by that objective, and turns of `improve` on products with an inner format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from itertools import permutations, product
from typing import TYPE_CHECKING

import numpy as np

from ...errors import PlanError
from ...schemes_db import Scheme, Target
from ...schemes_db.catalog import Catalog
from ...schemes_db.composition import best_composition, build, oriented
from ...schemes_db.recipes import shape_text
from ...schemes_db.uneven import Shape, inner_products, uneven_product
from ..elite_pool import ElitePool
from ..runs.snapshot import Arrays
from ..seeds import splitmix
from ..terms.ternary import TernaryTerms, canonical, with_signs
from ..terms.ternary_words import HALF_BITS, packed, unpacked
from ..turn_fleet import FoundFleet
from .product_rank import POOL, PREFIX, InnerFormat, inner_format

if TYPE_CHECKING:
    from .kernel import State

ROOM = 2
"""Default of `room`."""

DETOUR_STEPS, DETOUR_PLUS, DETOUR_ROOM, DESCENTS = 200_000, 10_000, 3, 6
"""Steps of a detour (times 1 to 4), steps between its pluses, how far it goes above the rank wanted, and the number of
descents of DETOUR_STEPS each that it has to return."""

HOT, COLD = 0.8, 0.15
"""First and last temperature in gains of a pair. At 3x3x3 over 1x3x3 and 2x3x5 over 3x3x1, 0.4 to 0.1 and 1.5 to 0.3
lead to the same costs."""

PLUS_SHARE = 50
"""A walk makes a plus after its steps / PLUS_SHARE without a lower cost."""


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


def walk(start: TernaryTerms, inner: InnerFormat, rank: int, steps: int, seed: int, index: int) -> TernaryTerms:
    """Walk from a scheme to one of at most a rank whose product with the inner format has a low rank.

    A detour through higher ranks leads to another scheme, then the walk is cooled towards more groups. Returns the
    start where the walk does not get down to that rank.

    Raises:
        PlanError: a factor has more than 32 blocks.
    """
    from .kernel import Costs, cool

    rng = np.array([splitmix(seed, index)], dtype=np.uint64)
    most = max(start.rank, rank) + DETOUR_ROOM
    state, best = _state(start, inner, most), _state(start, inner, most)
    costs = Costs(inner.rank, inner.table(most + 1), np.flatnonzero(inner.gains.any(axis=1)))
    pair = float(inner.gains[:, 2:].max() if not inner.gains[:, 2].any() else inner.gains[:, 2].max())
    length = DETOUR_STEPS * (1 + splitmix(seed, index) % 4) if steps else 0
    cool(state, best, costs, length, 2 * pair, pair, DETOUR_PLUS, most, rng)
    for _ in range(DESCENTS):
        if state.numbers[0] > rank:
            cool(state, best, costs, min(length, DETOUR_STEPS), pair, pair, DETOUR_STEPS + 1, 0, rng)
    if state.numbers[0] > rank:
        return start
    cool(state, best, costs, steps, HOT * pair, COLD * pair, max(steps // PLUS_SHARE, 1), rank, rng)
    return _terms(start, best)


def _state(terms: TernaryTerms, inner: InnerFormat, most: int) -> State:
    """Return a state with the terms and room for `most`, all terms in groups by one factor."""
    from .kernel import State

    forms, signs = canonical(terms)
    x, turns = np.zeros((3, most), dtype=np.uint64), np.zeros(most, dtype=np.uint64)
    x[:, : terms.rank] = packed(TernaryTerms(terms.target, forms))
    turns[: terms.rank] = signs & np.uint64(HALF_BITS)
    labels = np.full(most, np.flatnonzero(inner.gains.any(axis=1))[0], dtype=np.int64)
    return State(x, turns, labels, np.array([terms.rank, 0], dtype=np.int64))


def _terms(like: TernaryTerms, state: State) -> TernaryTerms:
    rank = int(state.numbers[0])
    forms = unpacked(like.target, np.ascontiguousarray(state.x[:, :rank]))
    signs = np.where(state.signs[:rank] != 0, ~np.uint64(0), np.uint64(0))
    return with_signs(forms, forms.words, signs)

"""Walks for groups of products: searches by that objective, and turns of `improve` on products with an inner format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from itertools import permutations, product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...errors import PlanError
from ...schemes_db import Scheme, Target
from ...schemes_db.catalog import Catalog
from ...schemes_db.closure import OuterScheme
from ...schemes_db.composed_ranks import BOARD_SIDE
from ...schemes_db.composition import best_composition, build, oriented
from ...schemes_db.constructions import FACTOR_AXES
from ...schemes_db.uneven import Shape, inner_products, uneven_product
from ..elite_pool import ElitePool
from ..flipgraph.gpu.device import one_gpu
from ..runs.snapshot import Arrays
from ..seeds import splitmix
from ..terms.ternary import TernaryTerms, canonical, with_signs
from ..terms.ternary_words import HALF_BITS, packed, unpacked
from ..turn_fleet import FoundFleet
from .product_rank import InnerFormat, board_ranks

if TYPE_CHECKING:
    from .kernel import Costs, Plan, State

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
        super().__init__(target, walkers)
        self._gpu = None if device == "cpu" else one_gpu(device)
        self._inner, self._seed, self._room, self._walks = inner, seed, room, 0
        self._outer, self._pool = starts[0].target, ElitePool(self.POOL)
        for start in starts:
            self._offer(TernaryTerms.from_scheme(start))
        self._rank = min(start.rank for start in starts)
        walk(next(iter(self._pool)), self._inner, self._rank, 0, seed, 0)  # compiles

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


def walk(start: TernaryTerms, inner: InnerFormat, rank: int, steps: int, seed: int, index: int) -> TernaryTerms:
    """Walk from a scheme to one of at most a rank whose product with the inner format has a low rank.

    Returns the start where the walk does not get down to that rank.

    Raises:
        PlanError: a factor has more than 32 blocks.
    """
    from . import kernel

    rng = np.array([splitmix(seed, index)], dtype=np.uint64)
    plan = plan_of(inner, max(start.rank, rank), steps)
    state, best = state_of(start, inner, plan.limit), state_of(start, inner, plan.limit)
    reached = kernel.walk(state, best, costs_of(inner, start.target.shape, plan.limit), plan, rank, rng)
    return terms_of(start, best) if reached else start


def costs_of(inner: InnerFormat, outer: Shape, most: int) -> Costs:
    """Return the costs of walks at ranks up to `most`."""
    from .kernel import Costs

    gains = inner.table(most + 1)
    lines = [np.array(longer or (False,) * count) for longer, count in zip(inner.longer, outer, strict=True)]
    longer = []
    for rows, columns in FACTOR_AXES:
        for blocks in (lines[rows][:, None], lines[columns]):
            whole = np.broadcast_to(blocks, (outer[rows], outer[columns]))
            word = sum(1 << int(place) for place in np.flatnonzero(whole))
            longer.append(word | word << HALF_BITS)
    axes = np.flatnonzero(gains.any(axis=(0, 2)))
    return Costs(inner.ranks, gains, axes if len(axes) else np.array([0]), np.array(longer, dtype=np.uint64))


def plan_of(inner: InnerFormat, rank: int, steps: int) -> Plan:
    """Return the plan of walks from and to schemes of at most a rank; without steps it has no detour."""
    from .kernel import Plan

    gains, ranks = inner.table(BOARD_SIDE)[0, :, 2:], inner.ranks
    pair = float(gains[:, 0].max() or gains.max() or np.median(ranks[[1, 2, 4]] - ranks[0]) / 2)
    detour = DETOUR_STEPS if steps else 0
    plus_after = max(steps // PLUS_SHARE, 1)
    return Plan(rank + DETOUR_ROOM, steps, plus_after, detour, DETOUR_PLUS, DESCENTS, pair, HOT, COLD)


def state_of(terms: TernaryTerms, inner: InnerFormat, most: int) -> State:
    """Return a state with the terms and room for `most`, all terms in groups by one factor."""
    from .kernel import State

    forms, signs = canonical(terms)
    x, turns = np.zeros((3, most), dtype=np.uint64), np.zeros(most, dtype=np.uint64)
    x[:, : terms.rank] = packed(TernaryTerms(terms.target, forms))
    turns[: terms.rank] = signs & np.uint64(HALF_BITS)
    labels = np.full(most, inner.table(BOARD_SIDE).any(axis=(0, 2)).argmax(), dtype=np.int64)
    return State(x, turns, labels, np.array([terms.rank, 0], dtype=np.int64))


def terms_of(like: TernaryTerms, state: State) -> TernaryTerms:
    rank = int(state.numbers[0])
    forms = unpacked(like.target, np.ascontiguousarray(state.x[:, :rank]))
    signs = np.where(state.signs[:rank] != 0, ~np.uint64(0), np.uint64(0))
    return with_signs(forms, forms.words, signs)

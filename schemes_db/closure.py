"""Recipes for all formats up to 16 x 16 x 16: every scheme on blocks of two sizes, with groups of products.

For a scheme and a choice of groups, `BlockCounts` has the numbers of inner products of each kind for all ways to make
some blocks longer; their ranks for all sizes of the smaller block, and by how much others are longer, are then one
matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, permutations, product

import numpy as np
import numpy.typing as npt

from .composed_ranks import (
    BOARD_SIDE,
    add_patterns,
    add_sums_and_products,
    composed_ranks,
    lower,
    outer_patterns,
)
from .constructions import AXES, FACTOR_AXES
from .factor import IntArray
from .recipes import Recipe, in_order
from .scheme import Scheme
from .shared_factors import Group, best_groups, classes
from .uneven import Shape, Sizes

BoolArray = npt.NDArray[np.bool_]

RINGS = ("Z", "ZT", "Z2", "Q")

MORE: tuple[Shape, ...] = tuple((m, k, n) for m, k, n in product((1, 2, 3, 4), repeat=3))
"""By how much longer blocks are so along m, k and n, the least first."""

MOST_CUBES = 27
"""Schemes of formats with a larger product of the sides have blocks longer by 1 only: more gained nothing."""

UNKNOWN = 1 << 20
"""In place of the rank of a format beyond BOARD_SIDE."""

MAX_AXIS_PATTERNS = 1 << 8
"""Axes with more ways to make blocks longer have those with the fewest longer blocks only."""


@dataclass(frozen=True)
class _Ways:
    """The ways to make some blocks of an axis longer: `longer` (ways, blocks), and of which products, (rank, ways)."""

    longer: BoolArray
    products: BoolArray


def _ways_along(scheme: Scheme, axis: int) -> _Ways:
    count = scheme.target.shape[axis]
    masks = [tuple(mask >> i & 1 for i in range(count)) for mask in range((1 << count) - 1)]
    longer = np.array(sorted(masks, key=sum)[:MAX_AXIS_PATTERNS], dtype=bool)
    products = np.ones((scheme.rank, len(longer)), dtype=bool)
    for factor, axes in zip(scheme.factors, FACTOR_AXES, strict=True):
        if axis in axes:
            lines = (factor.dense != 0).any(axis=2 - axes.index(axis))
            products &= lines.astype(np.int64) @ longer.T.astype(np.int64) > 0
    return _Ways(longer, products)


class BlockCounts:
    """Numbers of inner products by kind, of a scheme with groups, for blocks of two sizes along each axis.

    A kind is six numbers: an inner product of it has, for smaller blocks of s and others of s + d along an axis, the
    length g s + x d there, with g the size of the group if that is its axis, else 1, and x the number of longer
    products or 0 or 1.
    """

    def __init__(self, scheme: Scheme, ways: Sequence[_Ways], groups: tuple[Group, ...]) -> None:
        self._blocks, self._ways = np.array(scheme.target.shape), ways
        grouped = {number for group in groups for number in group.products}
        single = [("", (number,)) for number in range(scheme.rank) if number not in grouped]
        members = sorted([*single, *groups], key=lambda one: (one[0], len(one[1])))
        kinds, columns = [], []
        for (axis, size), alike in groupby(members, key=lambda one: (one[0], len(one[1]))):
            numbers = np.array([products for _, products in alike])
            sums = [
                way.products[numbers].sum(axis=1) if axis == letter else way.products[numbers].any(axis=1)
                for letter, way in zip(AXES, ways, strict=True)
            ]
            times = [size if axis == letter else 1 for letter in AXES]
            for extra in product(*(range(count + 1) for count in times)):
                m, k, n = ((total == x).astype(np.float32) for total, x in zip(sums, extra, strict=True))
                if m.any() and k.any() and n.any():
                    pairs = (m[:, :, None] * k[:, None]).reshape(len(m), -1)
                    columns.append((pairs.T @ n).ravel())
                    kinds.append((*times, *extra))
        self.kinds = np.array(kinds)
        totals = [way.longer.sum(axis=1) for way in ways]
        m, k, n = (grid.ravel() for grid in np.meshgrid(*totals, indexing="ij"))
        # One number for three: rows are sorted a hundred times as slowly.
        larger, inverse = np.unique((m * BOARD_SIDE + k) * BOARD_SIDE + n, return_inverse=True)
        self._larger = np.stack(np.unravel_index(larger, 3 * (BOARD_SIDE,)), axis=1)
        self._pieces = self._distinct(np.stack(columns, axis=1), inverse)

    @staticmethod
    def _distinct(counts: npt.NDArray[np.float32], inverse: IntArray) -> list[tuple[npt.NDArray[np.float32], IntArray]]:
        """For equal numbers of longer blocks, the counts that differ, and a way for each."""
        # Rows are compared by a linear hash modulo 2^64, which is much faster than by sorting them.
        weights = np.random.default_rng(0).integers(1 << 62, size=counts.shape[1]) | 1
        hashes = counts.astype(np.int64) @ weights
        order = np.argsort(inverse, kind="stable")
        pieces = []
        for mine in np.split(order, np.flatnonzero(np.diff(inverse[order])) + 1):
            _, first = np.unique(hashes[mine], return_index=True)
            pieces.append((counts[mine[first]], mine[first]))
        return pieces

    def lower(self, ranks: IntArray, more: Shape) -> Iterator[tuple[Shape, Sizes]]:
        """Lower the ranks of all formats that the scheme makes; yield each with the sizes of the blocks.

        Longer blocks are so by `more` along m, k and n.
        """
        blocks = self._blocks
        smaller = np.array(list(product(*(range(1, BOARD_SIDE // count + 1) for count in blocks))))
        lengths = smaller * self.kinds[:, None, :3] + self.kinds[:, None, 3:] * np.array(more)
        inside = np.minimum(lengths, BOARD_SIDE)
        inner = np.where((lengths <= BOARD_SIDE).all(axis=2), ranks[tuple(np.moveaxis(inside, 2, 0))], UNKNOWN)
        for larger, (counts, ways) in zip(self._larger, self._pieces, strict=True):
            if any(one > 1 and not count for one, count in zip(more, larger, strict=True)):
                continue  # the same as with 1
            formats = smaller * blocks + larger * more
            fits = np.flatnonzero((formats <= BOARD_SIDE).all(axis=1))
            if not len(fits):
                continue
            # Sums stay below 2^24, so float32 holds them exactly, but for those with UNKNOWN, which are too large.
            totals = counts @ inner[:, fits].astype(np.float32)
            best = totals.argmin(axis=0)
            reached = totals[best, np.arange(len(fits))].astype(np.int64)
            for place in np.flatnonzero(reached < ranks[tuple(formats[fits].T)]).tolist():
                shape, rank = in_order(formats[fits[place]].tolist()), int(reached[place])
                if rank < ranks[shape]:
                    lower(ranks, shape, rank)
                    yield shape, self._sizes(int(ways[best[place]]), smaller[fits[place]], more)

    def _sizes(self, way: int, smaller: IntArray, more: Shape) -> Sizes:
        places = np.unravel_index(way, [len(one.longer) for one in self._ways])
        m, k, n = (
            tuple((int(size) + one.longer[place] * longer).tolist())
            for one, place, size, longer in zip(self._ways, places, smaller, more, strict=True)
        )
        return m, k, n


class OuterScheme:
    """A scheme whose products over blocks have low ranks, with groups of products if `grouped`."""

    def __init__(self, scheme: Scheme, grouped: bool = True) -> None:
        self.scheme = scheme
        self._ways = [_ways_along(scheme, axis) for axis in range(3)]
        self._shared = classes(scheme) if grouped else ()
        self._counts: dict[tuple[Group, ...], BlockCounts] = {}

    def lower(self, ranks: IntArray) -> Iterator[tuple[Shape, Sizes, tuple[Group, ...]]]:
        """Lower the ranks of all formats that the scheme makes; yield each with the sizes of the blocks and the groups.

        Groups are those that were the best so far for some size of equal blocks.
        """
        for groups in sorted({(), *self._groupings(ranks)} - set(self._counts)):
            self._counts[groups] = BlockCounts(self.scheme, self._ways, groups)
        for groups, counts in self._counts.items():
            for more in MORE[: 1 if np.prod(self.scheme.target.shape) > MOST_CUBES else None]:
                for shape, sizes in counts.lower(ranks, more):
                    yield shape, sizes, groups

    def _groupings(self, ranks: IntArray) -> set[tuple[Group, ...]]:
        """The best groups of products for each size of equal blocks."""
        found = set()
        sizes = (range(1, BOARD_SIDE // count + 1) for count in self.scheme.target.shape)
        for size in product(*sizes) if self._shared else ():

            def gain(axis: str, count: int, size: tuple[int, ...] = size) -> int:
                """The products that a group saves, for blocks of a size."""
                place = AXES.index(axis)
                many = min(count, BOARD_SIDE // size[place])
                wide = tuple(side * many if i == place else side for i, side in enumerate(size))
                return many * int(ranks[size]) - int(ranks[wide])

            found.add(best_groups(self._shared, gain))
        return found


def find_recipes(schemes: Mapping[str, Scheme]) -> list[Recipe]:
    """The recipes that the lowest ranks need over Z, over Q, modulo 2, and of ternary schemes, from schemes by name."""
    found: dict[Recipe, None] = {}
    for ring in RINGS:
        outers = {name: held for name, scheme in schemes.items() if (held := over(scheme, ring)) is not None}
        if ring != "Q" or any(scheme.ring.name == "Q" for scheme in outers.values()):
            found.update(dict.fromkeys(Closure(outers, ring).run()))
    return list(found)


def over(scheme: Scheme, ring: str) -> Scheme | None:
    """The scheme over one of RINGS, with all its products; None if it is none there."""
    if not scheme.target.is_general:
        return None
    if ring == "Z2":
        binary = scheme if scheme.ring.name == "Z2" else scheme.over_z2()
        full = binary is not None and all(np.diff(factor.indptr).all() for factor in binary.factors)
        return binary if full else None
    held = scheme.ring.name == "Z" or scheme.ring.name == ring
    return scheme if held and (ring != "ZT" or scheme.ternary) else None


class Closure:
    """The lowest ranks of all formats up to BOARD_SIDE over a ring, by every construction, and the recipes for them.

    Args:
        outers: schemes over the ring, by name.
        ring: one of RINGS, "ZT" for ternary schemes over Z; these have no groups, which need not make ternary schemes.

    Attributes:
        ranks: (17, 17, 17), see `composed_ranks`.
    """

    def __init__(self, outers: Mapping[str, Scheme], ring: str) -> None:
        self._ring = ring
        self._kept: dict[Shape, int] = {}
        for scheme in outers.values():
            shape = in_order(scheme.target.shape)
            self._kept[shape] = min(scheme.rank, self._kept.get(shape, scheme.rank))
        self.ranks = composed_ranks(self._kept, BOARD_SIDE, ring, recipes=())
        self._outers = {name: OuterScheme(scheme, grouped=ring != "ZT") for name, scheme in outers.items()}
        self._found: dict[Shape, Recipe] = {}

    def run(self) -> list[Recipe]:
        """Repeat all constructions until nothing changes; return the recipes that the ranks need."""
        changed = True
        while changed:
            changed = False
            for name, outer in self._outers.items():
                for shape, sizes, groups in outer.lower(self.ranks):
                    self._found[shape] = Recipe.of(name, outer.scheme, sizes, groups)
                    changed = True
            add_sums_and_products(self.ranks)
        return self._needed()

    def _needed(self) -> list[Recipe]:
        """The recipes of formats whose ranks sums, products and OUTERS do not reach from the ranks of the others."""
        patterns = list(outer_patterns(self._kept))
        needed = []
        for shape, recipe in self._found.items():
            others = self.ranks.copy()
            for order in permutations(shape):
                others[order] = UNKNOWN
            add_sums_and_products(others)
            add_patterns(others, patterns)
            if others[shape] > self.ranks[shape]:
                needed.append(recipe)
        return needed

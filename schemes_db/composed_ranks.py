"""The lowest ranks of all formats that sums, products and products of blocks reach from given schemes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, permutations, product

import numpy as np

from .factor import IntArray
from .recipes import Recipe, in_order, shipped_recipes
from .shipped import shipped
from .uneven import Shape, Sizes, product_shapes

OUTERS = ("strassen", "2x3x3-r15")
"""The schemes whose blocks are of unequal sizes in every format; those of recipes are so in their own formats."""

BOARD_SIDE = 16
"""The formats of the table of best known ranks, and of the recipes, go up to this side."""

SIDES = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))

Offsets = tuple[tuple[Shape, int], ...]
"""By how much products are longer than the smallest block along m, k and n (0 or 1), and how many products are so."""


def composed_ranks(
    kept: Mapping[Shape, int], side: int, ring: str = "Z", *, recipes: Sequence[Recipe] | None = None
) -> IntArray:
    """Return the lowest ranks (side + 1, side + 1, side + 1) of formats up to a side, in any order of their sides.

    `kept` are the ranks of stored schemes by sides in increasing order. See `Constructions`.
    """
    return Constructions(kept, side, ring, recipes=recipes).ranks


class Constructions:
    """All constructions of formats up to a side from stored schemes: sums along an axis, tensor products, blocks of two
    sizes that differ by 1 by OUTERS, and recipes. Those of schemes for which `kept` has no rank as low are left out.

    Attributes:
        ranks: (side + 1, side + 1, side + 1), the lowest ranks.
    """

    def __init__(
        self, kept: Mapping[Shape, int], side: int, ring: str = "Z", *, recipes: Sequence[Recipe] | None = None
    ) -> None:
        known = [one for one in (shipped_recipes() if recipes is None else recipes) if max(one.shape) <= side]
        self._recipes = [
            one for one in known if one.holds_over(ring) and kept.get(in_order(one.blocks), one.rank + 1) <= one.rank
        ]
        self._longer = list(outer_patterns(kept))
        sides = np.arange(side + 1, dtype=np.int64)
        ranks: IntArray = sides[:, None, None] * sides[:, None] * sides
        for shape, rank in kept.items():
            if max(shape) <= side:
                lower(ranks, shape, rank)
        self.ranks = self._settled(ranks)

    def with_rank(self, shape: Shape, rank: int) -> IntArray:
        """Return the ranks if a format had a lower one, by the same constructions."""
        ranks = self.ranks.copy()
        lower(ranks, shape, rank)
        return self._settled(ranks)

    def _settled(self, ranks: IntArray) -> IntArray:
        """Repeat all constructions, in place, until nothing changes."""
        while True:
            before = ranks.copy()
            add_sums_and_products(ranks)
            add_patterns(ranks, self._longer)
            for one in self._recipes:
                lower(ranks, one.shape, sum(count * int(ranks[part]) for part, count in one.parts))
            if np.array_equal(before, ranks):
                return ranks


def lower(ranks: IntArray, shape: Shape, rank: int) -> None:
    """Lower the rank of a format in every order of its sides, if it is above."""
    if rank < ranks[shape]:
        for order in permutations(shape):
            ranks[order] = rank


def add_sums_and_products(ranks: IntArray) -> None:
    """Lower the ranks by sums along an axis and tensor products of any two formats."""
    side = len(ranks) - 1
    for whole in range(2, side + 1):
        for part in range(1, whole // 2 + 1):
            np.minimum(ranks[..., whole], ranks[..., part] + ranks[..., whole - part], out=ranks[..., whole])
    _symmetric(ranks)
    # Of the two formats of a product one has at most as many terms as the square root of those of the largest format.
    for m, k, n in product(range(1, side + 1), repeat=3):
        if 1 < (m * k * n) ** 2 <= side**3:
            multiples = ranks[m::m, k::k, n::n]
            a, b, c = multiples.shape
            np.minimum(multiples, ranks[m, k, n] * ranks[1 : a + 1, 1 : b + 1, 1 : c + 1], out=multiples)
    _symmetric(ranks)


def _symmetric(ranks: IntArray) -> None:
    ranks[...] = np.minimum.reduce([ranks.transpose(order) for order in SIDES])


def add_patterns(ranks: IntArray, longer: Sequence[tuple[Shape, Shape, Offsets]]) -> None:
    """Lower the ranks of all formats with blocks of two sizes, by `outer_patterns`."""
    for blocks, larger, counts in longer:
        most = [(len(ranks) - 1 - more) // count for count, more in zip(blocks, larger, strict=True)]
        if min(most) < 1:
            continue
        a, b, c = most
        total = np.zeros(most, dtype=np.int64)
        for (x, y, z), count in counts:
            total += count * ranks[1 + x : 1 + x + a, 1 + y : 1 + y + b, 1 + z : 1 + z + c]
        for order in SIDES:
            cut = tuple(slice(blocks[i] + larger[i], blocks[i] * most[i] + larger[i] + 1, blocks[i]) for i in order)
            np.minimum(ranks[cut], np.transpose(total, order), out=ranks[cut])


def outer_patterns(kept: Mapping[Shape, int]) -> Iterator[tuple[Shape, Shape, Offsets]]:
    """The blocks of OUTERS for which `kept` has a rank as low, the numbers of longer blocks, and the counts."""
    for name in OUTERS:
        scheme = shipped(name).scheme
        if kept.get(in_order(scheme.target.shape), scheme.rank + 1) <= scheme.rank:
            for larger in product(*(range(count) for count in scheme.target.shape)):
                if any(larger):
                    m, k, n = larger
                    yield from ((scheme.target.shape, (m, k, n), counts) for _, counts in patterns(name, (m, k, n)))


@lru_cache(maxsize=64)
def patterns(name: str, larger: Shape) -> tuple[tuple[Sizes, Offsets], ...]:
    """The ways to make so many blocks along each axis longer by 1, of which no two have the same products.

    Each with 1 for the longer blocks and 0 for the others.
    """
    outer = shipped(name).scheme
    axes = [
        [tuple(int(i in chosen) for i in range(count)) for chosen in combinations(range(count), more)]
        for count, more in zip(outer.target.shape, larger, strict=True)
    ]
    found: dict[Offsets, Sizes] = {}
    for m, k, n in product(*axes):
        shapes = product_shapes(outer, (_plus_one(m), _plus_one(k), _plus_one(n)))
        counts = Counter((x - 1, y - 1, z - 1) for x, y, z in shapes)
        found.setdefault(tuple(sorted(counts.items())), (m, k, n))
    return tuple((sizes, counts) for counts, sizes in found.items())


def _plus_one(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size + 1 for size in sizes)

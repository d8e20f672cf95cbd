"""The best composition of stored schemes for a format: sums, tensor products and products of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import permutations, product

from ..errors import TargetError
from .algebra import naive, permute, tensor
from .composed_ranks import BOARD_SIDE, OUTERS, composed_ranks, patterns
from .constructions import AXES, direct_sum
from .factor import IntArray
from .recipes import Recipe, in_order, shape_text, shipped_recipes
from .ring import Ring, Z
from .scheme import Scheme
from .shared_factors import Group
from .shipped import shipped
from .target import Target
from .uneven import Shape, Sizes, inner_products, uneven_product

MAX_SIDE = 64
"""The largest size that is composed: the table of ranks grows with the product of the three."""

NO_SIZES: Sizes = ((), (), ())


@dataclass(frozen=True)
class Part:
    """A construction of a format: a stored scheme, the classical algorithm, a sum, a tensor product or blocks.

    `how` is "scheme" (with its `name`), "naive", "sum m", "sum k", "sum n", "product", "uneven product" or "shared
    factors"; `parts` are the schemes that it needs. Only the last two have `sizes`, those of the blocks along m, k and
    n, and only the last has `groups`, the products that share a factor. The first part of these is the scheme that
    multiplies the blocks, the others compute its products: one part for all products of the same shape, `count` of
    them.
    """

    shape: Shape
    rank: int
    how: str
    name: str = ""
    parts: tuple[Part, ...] = ()
    sizes: Sizes = NO_SIZES
    groups: tuple[Group, ...] = ()
    count: int = 1

    @property
    def blocks(self) -> Shape:
        """Numbers of blocks along m, k and n."""
        m, k, n = map(len, self.sizes)
        return m, k, n

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The tree as indented text."""
        blocks = " x ".join("+".join(map(str, axis)) for axis in self.sizes if axis)
        more = "".join(f" {text}" for text in (self.name, blocks, " ".join(map(str, self.groups))) if text)
        times = f"{self.count} times " if self.count > 1 else ""
        head = f"{times}{shape_text(self.shape)}:{self.rank} {self.how}{more}"
        return (head, *(f"  {line}" for part in self.parts for line in part.lines))


def best_composition(shape: Shape, kept: Mapping[Shape, tuple[int, str]], ring: str = "Z") -> Part:
    """The lowest rank for a format from stored schemes over a ring ("ZT": ternary ones), by `composed_ranks`.

    `kept` gives, for sizes in increasing order, the lowest rank of a scheme and its name; any order of the sizes is as
    good. Ties are won by stored schemes, then products, sums, recipes and other uneven products.

    Raises:
        TargetError: a side is beyond MAX_SIDE.
    """
    if max(shape) > MAX_SIDE or min(shape) < 1:
        raise TargetError(f"compositions are known for sizes 1 to {MAX_SIDE}, not {shape_text(shape)}")
    lowest = {size: rank for size, (rank, _) in kept.items()}
    ranks = ranks_up_to(max(shape), lowest, ring)

    def tree(key: Shape) -> Part:
        rank = int(ranks[key])
        if lowest.get(key) == rank:
            return Part(key, rank, "scheme", kept[key][1])
        m, k, n = key
        if rank == m * k * n:
            return Part(key, rank, "naive")
        for how, parts in _ways(key):
            first, second = (int(ranks[part]) for part in parts)
            if rank == (first * second if how == "product" else first + second):
                return Part(key, rank, how, parts=tuple(tree(in_order(part)) for part in parts))
        recipe = next(
            one
            for one in _recipes(key, ring)
            if rank == sum(count * int(ranks[part]) for part, count in one.parts)
            and lowest.get(in_order(one.blocks), one.rank + 1) <= one.rank
        )
        outer = Part(in_order(recipe.blocks), recipe.rank, "scheme", recipe.outer)
        how = "shared factors" if recipe.groups else "uneven product"
        inner = (replace(tree(part), count=count) for part, count in recipe.parts)
        return Part(key, rank, how, "", (outer, *inner), recipe.sizes, recipe.groups)

    return tree(in_order(shape))


def ranks_up_to(side: int, lowest: Mapping[Shape, int], ring: str = "Z") -> IntArray:
    """The table of `composed_ranks` for sides of at least this one; the last few tables are stored."""
    size = next(size for size in (BOARD_SIDE, 2 * BOARD_SIDE, MAX_SIDE) if side <= size)
    return _table(size, tuple(sorted(lowest.items())), ring)


@lru_cache(maxsize=8)
def _table(size: int, lowest: tuple[tuple[Shape, int], ...], ring: str) -> IntArray:
    ranks = composed_ranks(dict(lowest), size, ring)
    ranks.setflags(write=False)
    return ranks


def _ways(key: Shape) -> Iterator[tuple[str, tuple[Shape, Shape]]]:
    """All products and sums of two smaller sizes that make a size."""
    factors = [[(d, size // d) for d in range(1, size + 1) if size % d == 0] for size in key]
    for (m, p), (k, q), (n, r) in product(*factors):
        if (m, k, n) != (1, 1, 1) and (p, q, r) != (1, 1, 1):
            yield "product", ((m, k, n), (p, q, r))
    for position, axis in enumerate(AXES):
        for cut in range(1, key[position] // 2 + 1):
            first, second = list(key), list(key)
            first[position], second[position] = key[position] - cut, cut
            yield f"sum {axis}", ((first[0], first[1], first[2]), (second[0], second[1], second[2]))


def _recipes(key: Shape, ring: str) -> Iterator[Recipe]:
    """All recipes of a format over a ring, then the products of blocks of two sizes by OUTERS."""
    yield from (one for one in shipped_recipes() if one.shape == key and one.holds_over(ring))
    for name in OUTERS:
        scheme = shipped(name).scheme
        for blocks in dict.fromkeys(permutations(key)):
            small = [side // count for side, count in zip(blocks, scheme.target.shape, strict=True)]
            m, k, n = (side % count for side, count in zip(blocks, scheme.target.shape, strict=True))
            if min(small) >= 1 and any((m, k, n)):
                for larger, _ in patterns(name, (m, k, n)):
                    sizes = [tuple(size + one for one in axis) for axis, size in zip(larger, small, strict=True)]
                    yield Recipe.of(name, scheme, (sizes[0], sizes[1], sizes[2]), ())


def build(part: Part, shape: Shape, scheme_named: Callable[[str], Scheme], ring: Ring = Z) -> Scheme:
    """The scheme of a composition for a format, whatever the order of its three sides.

    `scheme_named` gives the schemes that it needs over a ring of the characteristic of `ring`.
    """
    if in_order(shape) != part.shape:
        raise TargetError(f"this composition is of {part.shape}, not of {shape}")
    key = part.shape
    if part.how == "naive":
        made = naive(Target.general(*key), ring)
    elif part.how == "scheme":
        made = oriented(scheme_named(part.name), key)
    elif part.sizes != NO_SIZES:
        outer = oriented(scheme_named(part.parts[0].name), part.blocks)
        ways = {one.shape: one for one in part.parts[1:]}
        shapes = dict.fromkeys(one.shape for one in inner_products(outer, part.sizes, part.groups))
        inner = [build(ways[in_order(shape)], shape, scheme_named, ring) for shape in shapes]
        made = uneven_product(outer, part.sizes, inner, part.groups)
    else:
        first, second = _shapes_of(part)
        left, right = (
            build(one, size, scheme_named, ring) for one, size in zip(part.parts, (first, second), strict=True)
        )
        made = tensor(left, right) if part.how == "product" else direct_sum(left, right, part.how[-1])
    return oriented(made, shape)


def _shapes_of(part: Part) -> tuple[Shape, Shape]:
    """The orientations of the two parts that make the size: those among `_ways` whose sorted sizes they are."""
    wanted = (part.parts[0].shape, part.parts[1].shape)
    for how, (first, second) in _ways(part.shape):
        if how == part.how and (in_order(first), in_order(second)) == wanted:
            return first, second
    raise TargetError(f"no {part.how} of {wanted[0]} and {wanted[1]} makes {part.shape}")


def oriented(scheme: Scheme, shape: Shape) -> Scheme:
    """The scheme with its roles permuted so that its sizes stand in the order of `shape`."""
    if scheme.target.shape == shape:
        return scheme
    sizes = dict(zip(AXES, scheme.target.shape, strict=True))
    for order in ("knm", "nmk", "nkm", "mnk", "kmn"):
        if tuple(sizes[letter] for letter in order) == shape:
            return permute(scheme, order)
    raise TargetError(f"{scheme.target} can't be permuted into {'x'.join(map(str, shape))}")

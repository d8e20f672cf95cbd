"""The best composition of kept schemes for a size: dynamic programming over sums, products and unequal blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, permutations, product
from typing import NamedTuple

from ..errors import TargetError
from .algebra import naive, permute, tensor
from .constructions import AXES, direct_sum
from .scheme import Scheme
from .shipped import shipped
from .target import Target
from .uneven import Shape, Sizes, product_shapes, uneven_product

MAX_SIDE = 64
"""The largest size that is composed: the table grows with the product of the three."""

OUTERS = ("strassen", "2x3x3-r15")
"""The schemes that multiply blocks of unequal sizes. Of the 680 formats from 2x2x2 to 16x16x16 Strassen's lowers the
rank of 271; the other one then lowers 151, all above 8x8x8, of which 34 are not among the 271. Another shipped scheme
would lower 22 more."""

NO_SIZES: Sizes = ((), (), ())


class _Way(NamedTuple):
    """The best way to a size that is known so far: its rank, `Part.how`, and the sizes of its parts.

    An uneven product also has the sizes of its blocks and the name of the scheme that multiplies them.
    """

    rank: int
    how: str
    parts: tuple[Shape, ...] = ()
    sizes: Sizes = NO_SIZES
    outer: str = ""


@dataclass(frozen=True)
class Part:
    """A way to a size: a kept scheme, the classical algorithm, a direct sum, a tensor product or unequal blocks.

    `how` is "scheme" (with its `name`), "naive", "sum m", "sum k", "sum n", "product" or "uneven product"; `parts` are
    what it is made of. Only an uneven product has `sizes`, those of its blocks along m, k and n. Its first part is the
    scheme that multiplies the blocks, the others compute its products: one part for all products of the same shape.
    """

    shape: Shape
    rank: int
    how: str
    name: str = ""
    parts: tuple[Part, ...] = ()
    sizes: Sizes = NO_SIZES

    @property
    def blocks(self) -> Shape:
        """Numbers of blocks of an uneven product along m, k and n."""
        m, k, n = map(len, self.sizes)
        return m, k, n

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The tree as indented text."""
        blocks = " x ".join("+".join(map(str, axis)) for axis in self.sizes if axis)
        more = "".join(f" {text}" for text in (self.name, blocks) if text)
        head = f"{'x'.join(map(str, self.shape))}:{self.rank} {self.how}{more}"
        return (head, *(f"  {line}" for part in self.parts for line in part.lines))


def best_composition(shape: Shape, kept: Mapping[Shape, tuple[int, str]]) -> Part:
    """The lowest rank for a size from kept schemes, sums along an axis, tensor products and uneven products.

    `kept` gives, for sizes in increasing order, the lowest rank of a scheme and its name; any
    order of the sizes is as good. Ties are won by stored schemes, then products, sums and uneven products, by
    those of OUTERS whose format `kept` has, with blocks whose sizes differ by at most 1 along an axis.

    Raises:
        TargetError: a side is beyond MAX_SIDE.
    """
    if max(shape) > MAX_SIDE or min(shape) < 1:
        raise TargetError(f"compositions are known for sizes 1 to {MAX_SIDE}, not {'x'.join(map(str, shape))}")
    table: dict[Shape, _Way] = {}
    outers = [
        (name, blocks)
        for name, blocks, rank in _outers()
        if _sorted(blocks) in kept and kept[_sorted(blocks)][0] <= rank
    ]

    def solve(wanted: Shape) -> int:
        key = _sorted(wanted)
        if key not in table:
            m, k, n = key
            table[key] = _Way(m * k * n, "naive")
            if key in kept and kept[key][0] <= table[key].rank:
                table[key] = _Way(kept[key][0], "scheme")
            for how, parts in _ways(key):
                ranks = [solve(part) for part in parts]
                rank = ranks[0] * ranks[1] if how == "product" else ranks[0] + ranks[1]
                if rank < table[key].rank:
                    table[key] = _Way(rank, how, parts)
            for name, sizes, shapes in _uneven_ways(key, outers):
                rank = sum(count * solve(shape) for shape, count in shapes)
                if rank < table[key].rank:
                    distinct = tuple(dict.fromkeys(_sorted(shape) for shape, _ in shapes))
                    table[key] = _Way(rank, "uneven product", distinct, sizes, name)
        return table[key].rank

    # Smaller sizes first, so that the recursion is never deep.
    for m in range(1, shape[0] + 1):
        for k in range(1, shape[1] + 1):
            for n in range(1, shape[2] + 1):
                solve((m, k, n))

    def tree(wanted: Shape) -> Part:
        key = _sorted(wanted)
        way = table[key]
        trees = [tree(part) for part in way.parts]
        if way.outer:
            scheme = shipped(way.outer).scheme
            trees.insert(0, Part(_sorted(scheme.target.shape), scheme.rank, "scheme", way.outer))
        name = kept[key][1] if way.how == "scheme" else ""
        return Part(key, way.rank, way.how, name, tuple(trees), way.sizes)

    return tree(shape)


def _sorted(shape: Shape) -> Shape:
    m, k, n = sorted(shape)
    return m, k, n


def _ways(key: Shape) -> Iterator[tuple[str, tuple[Shape, Shape]]]:
    """All products and sums of two smaller sizes that make a size."""
    factors = [[(d, size // d) for d in range(1, size + 1) if size % d == 0] for size in key]
    for m, p in factors[0]:
        for k, q in factors[1]:
            for n, r in factors[2]:
                if (m, k, n) != (1, 1, 1) and (p, q, r) != (1, 1, 1):
                    yield "product", ((m, k, n), (p, q, r))
    for position, axis in enumerate(AXES):
        for cut in range(1, key[position] // 2 + 1):
            first, second = list(key), list(key)
            first[position], second[position] = key[position] - cut, cut
            yield f"sum {axis}", ((first[0], first[1], first[2]), (second[0], second[1], second[2]))


def _uneven_ways(
    key: Shape, outers: Sequence[tuple[str, Shape]]
) -> Iterator[tuple[str, Sizes, list[tuple[Shape, int]]]]:
    """All sizes of the blocks of some of OUTERS that make a size: shapes of products and how many have each."""
    for name, blocks in outers:
        small = [side // count for side, count in zip(key, blocks, strict=True)]
        rest = [side % count for side, count in zip(key, blocks, strict=True)]
        if min(small) >= 1 and any(rest):
            m, k, n = small
            for larger, counts in _patterns(name, blocks, (rest[0], rest[1], rest[2])):
                sizes = [tuple(size + one for one in axis) for axis, size in zip(larger, small, strict=True)]
                shapes = [((m + x, k + y, n + z), count) for (x, y, z), count in counts]
                yield name, (sizes[0], sizes[1], sizes[2]), shapes


@lru_cache(maxsize=1)
def _outers() -> tuple[tuple[str, Shape, int], ...]:
    """OUTERS with their sides in every order, and their ranks."""
    found = []
    for name in OUTERS:
        scheme = shipped(name).scheme
        found += [(name, (m, k, n), scheme.rank) for m, k, n in sorted(set(permutations(scheme.target.shape)))]
    return tuple(found)


@lru_cache(maxsize=256)
def _patterns(name: str, blocks: Shape, larger: Shape) -> tuple[tuple[Sizes, tuple[tuple[Shape, int], ...]], ...]:
    """The ways to make so many blocks along each axis larger by 1, that differ in the shapes of the products.

    Each with the shapes, 1 along an axis if they are larger by 1 and else 0, and how many products have them.
    """
    outer = oriented(shipped(name).scheme, blocks)
    axes = [
        [tuple(int(i in chosen) for i in range(count)) for chosen in combinations(range(count), more)]
        for count, more in zip(blocks, larger, strict=True)
    ]
    found: dict[tuple[tuple[Shape, int], ...], Sizes] = {}
    for m, k, n in product(*axes):
        shapes = product_shapes(outer, (_plus_one(m), _plus_one(k), _plus_one(n)))
        counts = Counter((x - 1, y - 1, z - 1) for x, y, z in shapes)
        found.setdefault(tuple(sorted(counts.items())), (m, k, n))
    return tuple((sizes, counts) for counts, sizes in found.items())


def _plus_one(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size + 1 for size in sizes)


def build(part: Part, shape: Shape, scheme_named: Callable[[str], Scheme]) -> Scheme:
    """The scheme of a composition for a size, whatever the order of its three sides."""
    if _sorted(shape) != part.shape:
        raise TargetError(f"this composition is of {part.shape}, not of {shape}")
    key = part.shape
    if part.how == "naive":
        made = naive(Target.general(*key))
    elif part.how == "scheme":
        made = oriented(scheme_named(part.name), key)
    elif part.how == "uneven product":
        outer = oriented(scheme_named(part.parts[0].name), part.blocks)
        ways = {one.shape: one for one in part.parts[1:]}
        shapes = dict.fromkeys(product_shapes(outer, part.sizes))
        inner = [build(ways[_sorted(shape)], shape, scheme_named) for shape in shapes]
        made = uneven_product(outer, part.sizes, inner)
    else:
        first, second = _shapes_of(part)
        left, right = build(part.parts[0], first, scheme_named), build(part.parts[1], second, scheme_named)
        made = tensor(left, right) if part.how == "product" else direct_sum(left, right, part.how[-1])
    return oriented(made, shape)


def _shapes_of(part: Part) -> tuple[Shape, Shape]:
    """The orientations of the two parts that make the size: those among `_ways` whose sorted sizes they are."""
    wanted = (part.parts[0].shape, part.parts[1].shape)
    for how, (first, second) in _ways(part.shape):
        if how == part.how and (_sorted(first), _sorted(second)) == wanted:
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

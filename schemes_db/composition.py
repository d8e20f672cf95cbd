"""The best composition of kept schemes for a size: dynamic programming over sums and products."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..errors import TargetError
from .algebra import naive, permute, tensor
from .constructions import AXES, direct_sum
from .scheme import Scheme
from .target import Target

Shape = tuple[int, int, int]

MAX_SIDE = 64
"""The largest size that is composed: the table grows with the product of the three."""


@dataclass(frozen=True)
class Part:
    """A way to a size: a kept scheme, the classical algorithm, a direct sum or a tensor product.

    `how` is "scheme" (with its `name`), "naive", "sum m", "sum k", "sum n" or "product"; `parts` are
    what it is made of.
    """

    shape: Shape
    rank: int
    how: str
    name: str = ""
    parts: tuple[Part, ...] = ()

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The tree as indented text."""
        head = f"{'x'.join(map(str, self.shape))}:{self.rank} {self.how}{f' {self.name}' if self.name else ''}"
        return (head, *(f"  {line}" for part in self.parts for line in part.lines))


def best_composition(shape: Shape, kept: Mapping[Shape, tuple[int, str]]) -> Part:
    """The lowest rank for a size from kept schemes, sums along an axis and tensor products.

    `kept` gives, for sizes in increasing order, the lowest rank of a scheme and its name; any
    order of the sizes is as good. Ties are won by stored schemes, then products, then sums.

    Raises:
        TargetError: a side is beyond MAX_SIDE.
    """
    if max(shape) > MAX_SIDE or min(shape) < 1:
        raise TargetError(f"compositions are known for sizes 1 to {MAX_SIDE}, not {'x'.join(map(str, shape))}")
    table: dict[Shape, tuple[int, str, tuple[Shape, ...]]] = {}

    def solve(wanted: Shape) -> int:
        key = _sorted(wanted)
        if key not in table:
            m, k, n = key
            table[key] = (m * k * n, "naive", ())
            if key in kept and kept[key][0] <= table[key][0]:
                table[key] = (kept[key][0], "scheme", ())
            for how, parts in _ways(key):
                ranks = [solve(part) for part in parts]
                rank = ranks[0] * ranks[1] if how == "product" else ranks[0] + ranks[1]
                if rank < table[key][0]:
                    table[key] = (rank, how, parts)
        return table[key][0]

    # Smaller sizes first, so that the recursion is never deep.
    for m in range(1, shape[0] + 1):
        for k in range(1, shape[1] + 1):
            for n in range(1, shape[2] + 1):
                solve((m, k, n))

    def tree(wanted: Shape) -> Part:
        key = _sorted(wanted)
        rank, how, parts = table[key]
        return Part(key, rank, how, kept[key][1] if how == "scheme" else "", tuple(tree(part) for part in parts))

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


def build(part: Part, shape: Shape, scheme_named: Callable[[str], Scheme]) -> Scheme:
    """The scheme of a composition for a size, whatever the order of its three sides."""
    if _sorted(shape) != part.shape:
        raise TargetError(f"this composition is of {part.shape}, not of {shape}")
    key = part.shape
    if part.how == "naive":
        made = naive(Target.general(*key))
    elif part.how == "scheme":
        made = oriented(scheme_named(part.name), key)
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

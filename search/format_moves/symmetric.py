"""Starts of walks on schemes that are invariant under reversal: compositions of those of smaller formats."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import product
from typing import NamedTuple

import numpy as np

from ...errors import PlanError, unknown_name
from ...schemes_db import Z2, Scheme, Target
from ...schemes_db.algebra import tensor
from ...schemes_db.composition import oriented
from ...schemes_db.constructions import AXES, FACTOR_AXES, direct_sum
from ...schemes_db.recipes import in_order
from ...schemes_db.uneven import Shape
from ..terms.orbits import PairTerms
from .involutions import in_reversed_bases

SLACK = 3
"""Maximum excess of the rank of a start over the lowest one."""

NAIVE_SIZE = 125
"""Largest m k n of formats whose walks start from the naive scheme, too. From there 4x4x5 came to 61 in 8 to 16 s on
half an H200, from compositions of rank 63 to 62 in twice 8 s; 6x6x7 came from the naive 252 to 225, from compositions
of rank 198 to 186. 3x5x7 came from the naive 105 to 81 and from 3x4x6:54 with two borders, rank 87, to 79."""

COPIES = 48
"""Copies of a scheme, in bases in which one of its involutions is the reversal, and compositions of a smaller format
that are used as parts: walks from most of them stop higher."""


class Start(NamedTuple):
    """A scheme that is invariant under reversal, by its rank; `build` makes it, at the first use."""

    rank: int
    build: Callable[[], Scheme]


def nested_sum(outer: Scheme, inner: Scheme, axis: str) -> Scheme:
    """Return the direct sum along an axis with the blocks of `inner` between the two halves of those of `outer`.

    Ranks add. If both are invariant under reversal, so is the sum: reversal exchanges the two halves.

    Raises:
        PlanError: an axis that does not exist, an odd number of outer blocks along it, or schemes not over Z2.
        TargetError: formats that differ in another axis, or products that are not full.
    """
    if axis not in tuple(AXES):
        raise unknown_name("axis", axis, "mkn")
    if outer.ring != Z2 or inner.ring != Z2:
        raise PlanError("a nested sum is of schemes over Z2: take them modulo 2")
    place = AXES.index(axis)
    length, between = (scheme.target.shape[place] for scheme in (outer, inner))
    if length % 2:
        raise PlanError(f"{outer.target} can't enclose {inner.target}: it has an odd number of blocks along {axis}")
    half = length // 2
    whole = direct_sum(outer, inner, axis)
    lines = [np.arange(side) for side in whole.target.shape]
    lines[place][[*range(half), *range(length, length + between), *range(half, length)]] = np.arange(length + between)
    u, v, w = (part.restricted(lines[x], lines[y]) for part, (x, y) in zip(whole.factors, FACTOR_AXES, strict=True))
    return Scheme(whole.target, u, v, w, Z2)


def symmetric_starts(shape: Shape, stored: Callable[[Shape], Sequence[Scheme]], most: int = COPIES) -> list[Scheme]:
    """Return schemes over Z2 of a format that are invariant under reversal: of ranks at most SLACK above the lowest.

    `stored` returns the schemes to use of a format with sides in increasing order; those that are not invariant, or not
    over Z2, are ignored. Other formats are composed of these by nested sums and products. Factors have at most 64
    blocks.
    """
    memo: dict[Shape, list[Start]] = {}

    def known(wanted: Shape) -> list[Start]:
        if wanted not in memo:
            made = given(wanted)[:most] or sorted(_compositions(wanted, known), key=lambda one: one.rank)[:COPIES]
            naive = Start(math.prod(wanted), cache(lambda: PairTerms.naive(Target.general(*wanted)).to_scheme()))
            memo[wanted] = made or [naive]
        return memo[wanted]

    def given(wanted: Shape) -> list[Start]:
        return [Start(one.rank, partial(oriented, one, wanted)) for one in stored(wanted) if is_invariant(one)]

    wanted = in_order(shape)
    made = sorted([*given(wanted), *_compositions(wanted, known)], key=lambda one: one.rank)
    found: dict[str, Scheme] = {}
    for start in made:
        if len(found) >= most or start.rank > made[0].rank + SLACK:
            break
        found.setdefault(start.build().digest, start.build())
    return [oriented(scheme, shape) for scheme in found.values()]


def invariant_copies(scheme: Scheme, rng: np.random.Generator) -> list[Scheme]:
    """Return COPIES of a scheme over Z2 that are invariant under reversal; none, or itself, if it has no involution."""
    return [*([scheme] if is_invariant(scheme) else []), *in_reversed_bases(scheme, rng, COPIES)][:COPIES]


def is_invariant(scheme: Scheme) -> bool:
    """Return whether a scheme over Z2 is invariant under reversal."""
    if scheme.ring != Z2 or not scheme.target.is_general:
        return False
    try:
        PairTerms.from_scheme(scheme)
    except PlanError:
        return False
    return True


def _compositions(shape: Shape, known: Callable[[Shape], Sequence[Start]]) -> Iterator[Start]:
    """Yield nested sums and products of known schemes, in no order."""
    for place, axis in enumerate(AXES):
        nested = partial(nested_sum, axis=axis)
        for length in range(2, shape[place], 2):
            first, second = resized(shape, place, length), resized(shape, place, shape[place] - length)
            for outer, inner in _paired(known(in_order(first)), known(in_order(second))):
                yield Start(outer.rank + inner.rank, cache(partial(_joined, nested, outer, first, inner, second)))
    for m, k, n in product(*([d for d in range(1, side + 1) if side % d == 0] for side in shape)):
        first, second = (m, k, n), (shape[0] // m, shape[1] // k, shape[2] // n)
        if (1, 1, 1) not in (first, second):
            for left, right in _paired(known(in_order(first)), known(in_order(second))):
                yield Start(left.rank * right.rank, cache(partial(_joined, tensor, left, first, right, second)))


def resized(shape: Shape, place: int, size: int) -> Shape:
    """Return a format with another side at a place."""
    m, k, n = (size if n == place else side for n, side in enumerate(shape))
    return m, k, n


def _joined(
    operation: Callable[[Scheme, Scheme], Scheme], one: Start, first: Shape, other: Start, second: Shape
) -> Scheme:
    return operation(oriented(one.build(), first), oriented(other.build(), second))


def _paired(lefts: Sequence[Start], rights: Sequence[Start]) -> Iterator[tuple[Start, Start]]:
    """Yield every scheme of the longer list once, with those of the shorter one in turn."""
    for n in range(max(len(lefts), len(rights)) if lefts and rights else 0):
        yield lefts[n % len(lefts)], rights[n % len(rights)]

"""Routes to a format: starts from its stored schemes and from converted schemes of neighbouring formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...schemes_db import Z2, Scheme, Target
from ...schemes_db.composition import oriented
from ...schemes_db.constructions import AXES, direct_sum, project
from ...schemes_db.recipes import in_order
from ...schemes_db.uneven import Shape
from ..format_moves.corners import starts_for
from ..format_moves.projections import projections
from ..format_moves.symmetric import resized
from ..terms.packed import MAX_TERMS

PoolOf = Callable[[Shape], Sequence[Scheme]]
"""Function that returns the known schemes of a full product, sides in increasing order; the best come first."""

BORDER = "border"
"""Route from the schemes of a smaller format with a naive border."""

CUT = "cut"
"""Route from the schemes of a larger format, of which a block is dropped."""

TAKEN = 16
"""Maximum number of schemes of a neighbour that are converted, and of projections of each along an axis."""

BORDERED = 64
"""Maximum number of schemes of a neighbour that get a border: those that lead to the best known rank are rare."""

SLACK = 3
"""Maximum excess of the rank of a start over the lowest rank of its route."""

CUT_SLACK = 7
"""Maximum excess of the rank of a cut over that of the lowest cut: the direction that loses most may not be the best.

One H200, 5x5x10:180, whose 9th column costs 19 products and the 10th 17: blocks of the basis leave 168 products of
5x5x9, and walks came to 163. Of 128 islands that began at 168 to 178 one came to 161, the best known rank, in 12 s, all
others to 163.
"""

MOST = 256
"""Maximum number of starts of a route."""


class Route(NamedTuple):
    """Distinct schemes of one format to start from, and the name of their construction."""

    name: str
    starts: list[Scheme]


def routes(
    target: Target, pool_of: PoolOf, rng: np.random.Generator, *, most: int = MAX_TERMS, ternary: bool = False
) -> list[Route]:
    """Return the routes to a full product: its own schemes, borders of smaller ones, cuts of larger, sums of two.

    Starts have at most `most` products, and the route with the lowest start comes first. Modulo 2 bases are aligned
    with borders (`starts_for`), and cuts are in the directions that leave few products (`projections`); with `ternary`
    all starts have coefficients -1, 0, 1.

    Schemes with an even denominator have no place in walks modulo 2, and are left out.
    """

    def known(shape: Shape, most: int = TAKEN) -> list[Scheme]:
        found = pool_of(in_order(shape))
        usable = (one if ternary else one.over_z2() for one in found if not ternary or is_ternary(one))
        fitting = (one for one in usable if one is not None)
        return [oriented(one, shape) for _, one in zip(range(most), fitting, strict=False)]

    made = {
        "own": known(target.shape),
        BORDER: [start for shape, _ in beside(target, -1) for start in starts_for(known(shape, BORDERED), target, rng)],
        CUT: [
            start
            for shape, axis in beside(target, 1)
            for scheme in known(shape)
            for start in _shorter(scheme, axis, rng, ternary)
        ],
        "sum": [
            direct_sum(left, right, axis)
            for (first, second), axis in _halves(target)
            for left, right in _pairs(known(first), known(second), rng)
        ],
    }
    fitting = {name: [one for one in starts if one.rank <= most and _whole(one)] for name, starts in made.items()}
    found = [
        Route(name, _least(starts, rng, CUT_SLACK if name == CUT else SLACK))
        for name, starts in fitting.items()
        if starts
    ]
    return sorted(found, key=lambda route: min(start.rank for start in route.starts))


def is_ternary(scheme: Scheme) -> bool:
    """Return whether a scheme over Z has coefficients -1, 0 and 1; those modulo 2 are none."""
    return scheme.ternary and not scheme.ring.characteristic


def modulo_2(schemes: Sequence[Scheme]) -> list[Scheme]:
    """Return schemes modulo 2, without those that mean nothing there."""
    return [one for one in (scheme.over_z2() for scheme in schemes) if one is not None]


def _shorter(scheme: Scheme, axis: str, rng: np.random.Generator, ternary: bool) -> Iterator[Scheme]:
    """Yield projections along an axis: in any direction modulo 2, of single blocks over -1, 0, 1."""
    if ternary or scheme.ring != Z2:
        yield from (project(scheme, axis, index) for index in range(scheme.target.shape[AXES.index(axis)]))
    else:
        yield from projections(scheme, axis, TAKEN, rng, CUT_SLACK)


def neighbourhood(shape: Shape) -> set[Shape]:
    """Return all formats whose schemes `routes` uses for a format, sides in increasing order."""
    target = Target.general(*shape)
    near = {target.shape, *(other for by in (-1, 1) for other, _ in beside(target, by))}
    near |= {part for parts, _ in _halves(target) for part in parts}
    return set(map(in_order, near))


def _least(starts: Sequence[Scheme], rng: np.random.Generator, slack: int) -> list[Scheme]:
    """Select distinct starts within `slack` of the lowest rank, a random sample of MOST if there are more."""
    limit = min(start.rank for start in starts) + slack
    kept = list({start.digest: start for start in starts if start.rank <= limit}.values())
    return [kept[i] for i in sorted(rng.permutation(len(kept))[:MOST].tolist())]


def _whole(scheme: Scheme) -> bool:
    """Return whether no product has a zero factor (it may have become zero modulo 2)."""
    return all(len(np.unique(factor.product)) == scheme.rank for factor in scheme.factors)


def _pairs(
    lefts: Sequence[Scheme], rights: Sequence[Scheme], rng: np.random.Generator
) -> Iterator[tuple[Scheme, Scheme]]:
    """Yield every scheme of either side with a random one of the other side, and with itself if it is on both sides.

    A scheme and its copy share a factor of every product, so there are flips between the two.
    """
    if lefts and rights:
        both = {right.digest for right in rights}
        yield from ((left, left) for left in lefts if left.digest in both)
        for left in lefts:
            yield left, rights[int(rng.integers(len(rights)))]
        for right in rights:
            yield lefts[int(rng.integers(len(lefts)))], right


def beside(target: Target, by: int) -> Iterator[tuple[Shape, str]]:
    """Yield the formats with one block more (`by` 1) or less (-1) along an axis, and the axis; sides are 2 or more."""
    for place, side in enumerate(target.shape):
        if side + by > 1:
            yield resized(target.shape, place, side + by), AXES[place]


def _halves(target: Target) -> Iterator[tuple[tuple[Shape, Shape], str]]:
    """Yield splits in two parts along an axis, of thickness at least 2: a part of thickness 1 is a border."""
    for place, side in enumerate(target.shape):
        for cut in range(2, side // 2 + 1):
            yield (resized(target.shape, place, side - cut), resized(target.shape, place, cut)), AXES[place]

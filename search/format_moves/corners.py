"""Starts of walkers on a target from schemes of other targets: naive borders, cuts, restrictions, merges.

Source of the conversion of full products axis by axis: Kauers and Wood, "Exploring the meta flip graph for matrix
multiplication" (arXiv 2510.19787).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple

import numpy as np

from ...errors import PlanError
from ...schemes_db import Z2, Kind, Provenance, Scheme, Target
from ...schemes_db.constructions import AXES, direct_sum, extend, project
from ...schemes_db.factor import Factor, IntArray
from ..terms.packed import Same
from .borders import MAX_SIDE, align_basis_with_border
from .projections import MAX_LENGTH, projections

MEMBERS = 128
"""Maximum number of schemes of a pool that are converted; a larger pool is sampled."""

DETOURS = (0.0, 2.0)
"""The `detour` of each basis aligned with a border, for each scheme of a pool; 0 is the best found, see `borders`."""

DIRECTIONS = 8
"""Projections of each scheme of a pool, in directions that lose equally many products if there are several."""


class MoveResult(NamedTuple, Generic[Same]):
    """Terms of another format, the moves that led to them, and the indices of the given terms that were used."""

    terms: Same
    relation: str
    sources: tuple[int, ...]


def bordered(scheme: Scheme, target: Target) -> Scheme:
    """Return a scheme of a larger target: the given one in its first corner, the rest added naively.

    The target of the scheme must be the first corner of the larger one: so a full product is extended
    along any axes, and a triangular one along its diagonal.

    Raises:
        PlanError: the scheme's target is no corner of the larger one.
    """
    small = scheme.target
    if not _is_corner(small, target):
        raise PlanError(f"{small} is no corner of {target}: the border between them is not defined")
    (m, k, n), (rows, inner, cols) = small.shape, target.shape
    a, b, c = target.terms.T
    covered = (a // inner < m) & (a % inner < k) & (b // cols < k) & (b % cols < n) & (c // cols < m) & (c % cols < n)
    extra, values = target.terms[~covered], target.term_values[~covered]
    products, ones = np.arange(len(extra)), np.ones_like(values)
    u, v, w = (
        factor.placed(*shape).stacked(Factor.from_triplets(len(extra), *shape, products, blocks, coefficients))
        for factor, shape, blocks, coefficients in zip(
            scheme.factors, ((rows, inner), (inner, cols), (rows, cols)), extra.T, (ones, ones, values), strict=True
        )
    )
    provenance = Provenance(kind="search", parents=(scheme.digest,), relation="naive border")
    return Scheme(target, u, v, w, scheme.ring, provenance=provenance)


def cut(scheme: Scheme, target: Target) -> Scheme:
    """Return a scheme of a smaller target: blocks outside its corner are set to zero, and vanishing products dropped.

    Raises:
        PlanError: the smaller target is no corner of the scheme's.
    """
    if not _is_corner(target, scheme.target):
        raise PlanError(f"{target} is no corner of {scheme.target}: there is nothing to cut it from")
    u, v, w = _on_grid(scheme, target)
    provenance = Provenance(kind="search", parents=(scheme.digest,), relation="projection")
    return Scheme.from_arrays(target, u, v, w, scheme.ring, provenance=provenance)


def restricted(scheme: Scheme, target: Target) -> Scheme:
    """Return a scheme of a masked or structured target from one of the full product on its grid.

    Coefficients of absent blocks are set to zero, and products with a zero factor are dropped; products that
    agree in two factors are joined, if coefficients are real integers.

    Raises:
        PlanError: the scheme is of no full product or another grid, or the target is no product of matrices, has
            shared blocks, or has an empty matrix.
    """
    if not scheme.target.is_general or scheme.target.shape != target.shape or not target.is_product or target.shared:
        raise PlanError(f"{scheme.target} can't be restricted to {target}")
    if any((kinds == Kind.ABSENT).all() for kinds in target.kind_arrays):
        raise PlanError(f"{target} has no block that is wanted: there is nothing to search for")
    parts = [part.reshape(len(part), -1) for part in _on_grid(scheme, target)]
    if not scheme.ring.gaussian and set(scheme.denominators) == {1}:
        parts = _joined(parts, scheme.ring.characteristic)
    u, v, w = (part.reshape(-1, *kinds.shape) for part, kinds in zip(parts, target.kind_arrays, strict=True))
    provenance = Provenance("composition", parents=(scheme.digest,), relation="restriction to the blocks wanted")
    return Scheme.from_arrays(target, u, v, w, scheme.ring, denominators=scheme.denominators, provenance=provenance)


def _is_corner(small: Target, large: Target) -> bool:
    """Return whether a target is the first corner of another."""
    return all(a <= b for a, b in zip(small.shape, large.shape, strict=True)) and all(
        np.array_equal(part, whole[: part.shape[0], : part.shape[1]])
        for part, whole in zip(small.kind_arrays, large.kind_arrays, strict=True)
    )


def _on_grid(scheme: Scheme, target: Target) -> list[IntArray]:
    """Return the factors (R, rows, columns) in the blocks of a target, without products that have a zero factor."""
    parts = [
        np.where(kinds == Kind.ABSENT, 0, factor.dense[:, :rows, :cols])
        for factor, kinds in zip(scheme.factors, target.kind_arrays, strict=True)
        for rows, cols in [kinds.shape]
    ]
    left = np.logical_and.reduce([part.any(axis=(1, 2)) for part in parts])
    return [part[left] for part in parts]


def _joined(parts: list[IntArray], characteristic: int) -> list[IntArray]:
    """Join products that agree in two factors by adding their third factors, until none do; for integers only."""
    before = -1
    while before != len(parts[0]):
        before = len(parts[0])
        for f in range(3):
            others = [parts[g] for g in range(3) if g != f]
            keys = np.concatenate(others, axis=1)
            _, first, places = np.unique(keys, axis=0, return_index=True, return_inverse=True)
            total = np.zeros((len(first), parts[f].shape[1]), dtype=np.int64)
            np.add.at(total, places.ravel(), parts[f])
            if characteristic:
                total %= characteristic
            left = total.any(axis=1)
            chosen = first[left]
            parts = [total[left] if g == f else parts[g][chosen] for g in range(3)]
    return parts


def _by_a_block(scheme: Scheme, axis: str, grows: bool, rng: np.random.Generator, detour: float = 0.0) -> Scheme:
    """Return a full product with a naive block more along an axis, or without the one that leaves the fewest products.

    Over Z2 the basis is aligned with that border, with the `detour` of `borders`, or the best direction is left out.
    """
    size = scheme.target.shape[AXES.index(axis)]
    if grows and scheme.ring is Z2 and max(scheme.target.shape) <= MAX_SIDE:
        scheme = align_basis_with_border(scheme, axis, rng, detour)
    if grows:
        return extend(scheme, axis)
    if scheme.ring is Z2 and size <= MAX_LENGTH:
        return projections(scheme, axis, 1, rng)[0]
    return min((project(scheme, axis, index) for index in range(size)), key=lambda one: one.rank)


def _resized(scheme: Scheme, target: Target, rng: np.random.Generator, detour: float) -> Scheme:
    """Return a full product converted block by block, over Z2 each time in another basis or direction."""
    for place, axis in enumerate(AXES):
        while (missing := target.shape[place] - scheme.target.shape[place]) != 0:
            scheme = _by_a_block(scheme, axis, missing > 0, rng, detour)
    return scheme


def starts_for(pool: Sequence[Scheme], target: Target, rng: np.random.Generator) -> list[Scheme]:
    """Convert a pool to another target, without duplicates.

    Full products over Z2 are extended in aligned bases, and projected in DIRECTIONS that lose the most products.

    Walker i starts from start i modulo their number, so each start gets an equal share of the walkers. A
    large pool is sampled. Measured: 4x5x5:73 found from aligned borders led to 5x5x5:96; those found from
    plain borders, sooner, led to no improvement.

    Raises:
        PlanError: a scheme can't be converted.
    """
    if len(pool) > MEMBERS:
        pool = [pool[place] for place in rng.permutation(len(pool))[:MEMBERS].tolist()]
    starts = []
    for scheme in pool:
        larger = any(a > b for a, b in zip(scheme.target.shape, target.shape, strict=True))
        if scheme.target == target:
            starts.append(scheme)
        elif scheme.target.is_general and target.is_general:
            detours = DETOURS[:1] if scheme.ring != Z2 else DIRECTIONS * DETOURS[:1] if larger else DETOURS
            starts += [_resized(scheme, target, rng, detour) for detour in detours]
        else:
            starts.append(cut(scheme, target) if larger else bordered(scheme, target))
    return list({scheme.digest: scheme for scheme in starts}.values())


def change_format(pool: Sequence[Same], target: Target) -> list[MoveResult[Same]]:
    """Convert every scheme of a pool to another format.

    An axis that is to be doubled is merged with the next scheme of the pool; others change block by block.
    `MoveResult.sources` begins with the index of the scheme itself.

    Raises:
        TargetError: a target is no full product.
        PlanError: a target does not fit.
    """
    found = [MoveResult(terms, "", (place,)) for place, terms in enumerate(pool)]
    for axis in AXES:
        found = [_along(found, place, axis, target) for place in range(len(found))]
    return found


def _along(pool: Sequence[MoveResult[Same]], place: int, axis: str, target: Target) -> MoveResult[Same]:
    """Return a member of a pool with the length of the target along one axis."""
    one, other = pool[place], pool[(place + 1) % len(pool)]
    length, wanted = (shape[AXES.index(axis)] for shape in (one.terms.target.shape, target.shape))
    if length == wanted:
        return one
    scheme, sources = one.terms.to_scheme(), one.sources
    if wanted == 2 * length > 2 and other.terms.target.shape == one.terms.target.shape:
        relation, sources = f"merge along {axis}", one.sources + other.sources
        scheme = direct_sum(scheme, other.terms.to_scheme(), axis)
    else:
        relation = f"{'extension' if wanted > length else 'projection'} along {axis}"
        for _ in range(abs(wanted - length)):
            scheme = _by_a_block(scheme, axis, wanted > length, np.random.default_rng(place))
    relations = f"{one.relation}, {relation}" if one.relation else relation
    return MoveResult(type(one.terms).from_scheme(scheme), relations, tuple(dict.fromkeys(sources)))


def starts_from(pool: Sequence[Any], target: Target, rng: np.random.Generator | None) -> list[MoveResult[Any]]:
    """Convert every scheme of a pool to another format; with `rng`, for the many walkers of a GPU, in several bases.

    Raises:
        PlanError: a scheme can't be converted.
    """
    if rng is None:
        return change_format(pool, target)
    kind, schemes = type(pool[0]), [terms.to_scheme() for terms in pool]
    places = {scheme.digest: place for place, scheme in enumerate(schemes)}
    found = []
    for start in starts_for(schemes, target, rng):
        # A start that was made through intermediate schemes has no parent in the pool: its source is 0.
        source = next((places[digest] for digest in start.provenance.parents if digest in places), 0)
        found.append(MoveResult(kind.from_scheme(start), start.provenance.relation, (source,)))
    return found

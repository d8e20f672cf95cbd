"""Conversion of full products to other formats, axis by axis: merged, extended or projected.

Source: Kauers and Wood, "Exploring the meta flip graph for matrix multiplication" (arXiv 2510.19787).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple

import numpy as np

from ...schemes_db import Scheme, Target
from ...schemes_db.constructions import AXES, direct_sum, extend, project
from ...schemes_db.ring import Z2
from ..terms.packed import Same
from .borders import MAX_SIDE, align_basis_with_border
from .projections import MAX_LENGTH, projections


class MoveResult(NamedTuple, Generic[Same]):
    """Terms of another format, the moves that led to them, and the indices of the given terms that were used."""

    terms: Same
    relation: str
    sources: tuple[int, ...]


def longer(scheme: Scheme, axis: str, rng: np.random.Generator, detour: float = 0.0) -> Scheme:
    """Return a scheme with one naive block more; over Z2 in a basis aligned with that border."""
    if scheme.ring is Z2 and max(scheme.target.shape) <= MAX_SIDE:
        scheme = align_basis_with_border(scheme, axis, rng, detour)
    return extend(scheme, axis)


def shorter(scheme: Scheme, axis: str, rng: np.random.Generator) -> Scheme:
    """Return a scheme without the block whose removal leaves the fewest products; over Z2 in the best direction."""
    size = scheme.target.shape[AXES.index(axis)]
    if scheme.ring is Z2 and size <= MAX_LENGTH:
        return projections(scheme, axis, 1, rng)[0]
    return min((project(scheme, axis, index) for index in range(size)), key=lambda one: one.rank)


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
            scheme = (longer if wanted > length else shorter)(scheme, axis, np.random.default_rng(place))
    relations = f"{one.relation}, {relation}" if one.relation else relation
    return MoveResult(type(one.terms).from_scheme(scheme), relations, tuple(dict.fromkeys(sources)))

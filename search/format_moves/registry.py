"""Registry of moves from one format to another (merge, extend, project, product), and conversion of pools by them.

Source: Kauers and Wood, "Exploring the meta flip graph for matrix multiplication" (arXiv 2510.19787).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple

import numpy as np

from ...errors import PlanError, unknown_name
from ...schemes_db import Scheme, Target
from ...schemes_db.algebra import tensor
from ...schemes_db.constructions import AXES, direct_sum, extend, project
from ..terms.packed import PackedTerms, Same
from .borders import MAX_SIDE, align_basis_with_border
from .projections import MAX_LENGTH, projections


class MoveResult(NamedTuple, Generic[Same]):
    """Terms of another format, the moves that led to them, and the indices of the given terms that were used."""

    terms: Same
    relation: str
    sources: tuple[int, ...]


class MoveStep(NamedTuple):
    """Terms after one move, its description, and the index of a second scheme of the pool if it used one."""

    terms: Any
    relation: str
    other: int | None = None


FormatMove = Callable[[Sequence[Any], int, Any, str, Target], MoveStep | None]
"""Function of a pool, an index in it, the current terms of that member, an axis (m, k, n) and the target; None if the
move does not apply."""


def _product(pool: Sequence[Any], place: int, terms: Any, axis: str, target: Target) -> MoveStep | None:
    """Return the product with the next scheme of the pool, if it has the format of the target."""
    other = (place + 1) % len(pool)
    pairs = zip(terms.target.shape, pool[other].target.shape, target.shape, strict=True)
    if terms is not pool[place] or any(x * y != size for x, y, size in pairs) or min(target.shape) < 2:
        return None
    whole = tensor(terms.to_scheme(), pool[other].to_scheme())
    return MoveStep(type(terms).from_scheme(whole), "product", other)


def _merge(pool: Sequence[Any], place: int, terms: Any, axis: str, target: Target) -> MoveStep | None:
    """Merge with the next scheme of the pool, if the target's axis is twice as long."""
    other = (place + 1) % len(pool)
    size, wanted = terms.target.shape[AXES.index(axis)], target.shape[AXES.index(axis)]
    if wanted != 2 * size or size < 2 or pool[other].target.shape != terms.target.shape:
        return None
    whole = direct_sum(terms.to_scheme(), pool[other].to_scheme(), axis)
    return MoveStep(type(terms).from_scheme(whole), f"merge along {axis}", other)


def _extend(pool: Sequence[Any], place: int, terms: Any, axis: str, target: Target) -> MoveStep | None:
    """Extend by one naive block; over Z2 in a basis aligned with the border."""
    if target.shape[AXES.index(axis)] <= terms.target.shape[AXES.index(axis)]:
        return None
    scheme = terms.to_scheme()
    if isinstance(terms, PackedTerms) and max(terms.target.shape) <= MAX_SIDE:
        scheme = align_basis_with_border(scheme, axis, np.random.default_rng(place))
    return MoveStep(type(terms).from_scheme(extend(scheme, axis)), f"extension along {axis}")


def _project(pool: Sequence[Any], place: int, terms: Any, axis: str, target: Target) -> MoveStep | None:
    """Project out the block whose removal leaves the fewest products; over Z2 in the direction that does."""
    size = terms.target.shape[AXES.index(axis)]
    if target.shape[AXES.index(axis)] >= size:
        return None
    scheme = terms.to_scheme()
    if isinstance(terms, PackedTerms) and size <= MAX_LENGTH:
        (shorter,) = projections(scheme, axis, 1, np.random.default_rng(place))
    else:
        shorter = min((project(scheme, axis, index) for index in range(size)), key=lambda one: one.rank)
    return MoveStep(type(terms).from_scheme(shorter), f"projection along {axis}")


_FORMAT_MOVES: dict[str, FormatMove] = {"merge": _merge, "extend": _extend, "project": _project, "product": _product}

MOVES = ("merge", "extend", "project")
"""Default moves of a run; `product` is not one, as a product of good schemes has a low rank but few flips."""


def register_format_move(name: str, passage: FormatMove) -> None:
    """Register a move from format to format.

    Raises:
        PlanError: the name is registered already.
    """
    if name in _FORMAT_MOVES:
        raise PlanError(f"a move named {name!r} is registered already")
    _FORMAT_MOVES[name] = passage


def format_move_names() -> tuple[str, ...]:
    """Return the names of the registered moves."""
    return tuple(_FORMAT_MOVES)


def refuse_moves(moves: Sequence[str]) -> None:
    """Raise a PlanError if a move is not known."""
    for name in moves:
        if name not in _FORMAT_MOVES:
            raise unknown_name("move", name, _FORMAT_MOVES)


def change_format(pool: Sequence[Same], target: Target, moves: Sequence[str] = MOVES) -> list[MoveResult[Same]]:
    """Convert every scheme of a pool to another format, axis by axis, each time by the first move that applies.

    `MoveResult.sources` begins with the index of the scheme itself.

    Raises:
        TargetError: a target is no full product.
        PlanError: a target does not fit, a move is not known, or no move applies.
    """
    refuse_moves(moves)
    found = [MoveResult(terms, "", (place,)) for place, terms in enumerate(pool)]
    for axis in AXES:
        found = [_along(found, place, axis, target, moves) for place in range(len(found))]
    for one in found:
        if one.terms.target != target:
            raise PlanError(f"no move leads from {pool[one.sources[0]].target} to {target}")
    return found


def _along(
    pool: Sequence[MoveResult[Same]], place: int, axis: str, target: Target, moves: Sequence[str]
) -> MoveResult[Same]:
    """Return a member of a pool after the moves along one axis."""
    terms, sources = pool[place].terms, list(pool[place].sources)
    here = [one.terms for one in pool]
    relations = [pool[place].relation] if pool[place].relation else []
    while terms.target.shape[AXES.index(axis)] != target.shape[AXES.index(axis)]:
        tried = (_FORMAT_MOVES[name](here, place, terms, axis, target) for name in moves)
        passed: MoveStep | None = next((one for one in tried if one is not None), None)
        if passed is None:
            raise PlanError(f"none of the moves {', '.join(moves)} leads from {terms.target} to {target}")
        terms = passed.terms
        relations.append(passed.relation)
        if passed.other is not None:
            sources += pool[passed.other].sources
    return MoveResult(terms, ", ".join(dict.fromkeys(relations)), tuple(dict.fromkeys(sources)))


def starts_from(
    pool: Sequence[Any], target: Target, moves: Sequence[str], rng: np.random.Generator | None
) -> list[MoveResult[Any]]:
    """Convert every scheme of a pool to another format.

    With `rng`, for the many walkers of a GPU, each scheme is converted in several bases aligned with the
    border, if `moves` are the default.

    Raises:
        PlanError: a scheme can't be converted.
    """
    if rng is None or tuple(moves) != MOVES:
        return change_format(pool, target, moves)
    from .corners import starts_for

    kind, schemes = type(pool[0]), [terms.to_scheme() for terms in pool]
    places = {scheme.digest: place for place, scheme in enumerate(schemes)}
    return [
        MoveResult(kind.from_scheme(start), start.provenance.relation, (_origin(start, places),))
        for start in starts_for(schemes, target, rng)
    ]


def _origin(start: Scheme, places: dict[str, int]) -> int:
    """Return the index of the scheme that a start was made from; 0 if it was made through intermediate schemes."""
    return next((places[digest] for digest in start.provenance.parents if digest in places), 0)

"""Conversion of the schemes of one format of a run to the starts of the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...schemes_db import Scheme, Target
from .registry import MOVES, MoveResult, change_format


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

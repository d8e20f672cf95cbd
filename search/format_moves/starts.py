"""From the schemes of one format of a run to the starts of the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...schemes_db import Scheme, Target
from .registry import MOVES, MoveResult, change_format


def starts_from(
    pool: Sequence[Any], target: Target, moves: Sequence[str], rng: np.random.Generator | None
) -> list[MoveResult[Any]]:
    """Every scheme of a pool brought to another format.

    With `rng`, for the many walkers of a GPU, in several bases that meet the border, where the moves are
    those that a run takes by itself.

    Raises:
        PlanError: a scheme can't be brought there.
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
    """The place of the scheme that a start was made of; 0 where it came by way of others."""
    return next((places[digest] for digest in start.provenance.parents if digest in places), 0)

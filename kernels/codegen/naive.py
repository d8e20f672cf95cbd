"""Linear maps of blocks in plain numpy: the reference for generated kernels."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ...schemes_db.program import Terms
from ..arrays import Matrix
from .maps import LinearMap


def apply_map(linear: LinearMap, blocks: Sequence[Matrix]) -> list[Matrix]:
    """Return the results of the map on blocks of one shape and dtype."""
    values = list(blocks)
    for terms in linear.lins:
        values.append(_sum(terms, values))
    return [_sum(terms, values) for terms in linear.results]


def _sum(terms: Terms, values: Sequence[Matrix]) -> Matrix:
    total = np.zeros_like(values[0])
    for coefficient, src in terms:
        factor = float(coefficient) if isinstance(coefficient, Fraction) else coefficient
        total += values[src].dtype.type(factor) * values[src]
    return total

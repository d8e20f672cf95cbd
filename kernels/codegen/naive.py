"""Linear maps of blocks in plain numpy or torch: the reference for generated kernels."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ...schemes_db.program import Terms
from .maps import LinearMap


def apply_map(linear: LinearMap, blocks: Sequence[Any]) -> list[Any]:
    """Return the results of the map on blocks, arrays or tensors, of one shape and dtype; one without terms is zero."""
    values = list(blocks)
    for terms in linear.lins:
        values.append(_sum(terms, values))
    return [_sum(terms, values) for terms in linear.results]


def _sum(terms: Terms, values: Sequence[Any]) -> Any:
    total: Any = None
    for coefficient, src in terms:
        factor = float(coefficient) if isinstance(coefficient, Fraction) else coefficient
        total = factor * values[src] if total is None else total + factor * values[src]
    if total is not None:
        return total
    first = values[0]
    return first.new_zeros(first.shape) if hasattr(first, "new_zeros") else np.zeros_like(first)

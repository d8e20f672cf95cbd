"""Approximation of a dense matrix by Kronecker-sparse factors, by any of the algorithms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...arguments import INTEGER, need
from ...errors import PlanError
from ...schemes_db.masks import refuse_masks
from .descent import alternating, gradient
from .hierarchical import Factorization, hierarchical
from .pattern import Pattern, check_composes

ALGORITHMS = ("hierarchical", "alternating", "gradient")


def factorize(
    dense: npt.ArrayLike,
    patterns: Sequence[Pattern],
    by: str = "hierarchical",
    *,
    seed: int = 0,
    on_event: Callable[[str], None] = lambda line: None,
) -> Factorization:
    """Compute factors K1 ... KL with these patterns whose product approximates a dense matrix (rows, cols).

    "hierarchical" is for chainable lists: optimal for two factors, within sqrt(L - 1) of the optimum for L.
    "alternating" (least squares for one factor after the other) and "gradient" (Adam) accept any list that composes,
    without guarantees; `seed` is for their random start.

    Raises:
        PlanError: the matrix is no floating-point matrix of the list's size, the list does not compose, or it is not
            chainable and `by` is "hierarchical".
    """
    need(str, by=by)
    need(INTEGER, least=0, seed=seed)
    check_composes(patterns)
    refuse_masks(dense=dense)
    matrix: npt.NDArray[Any] = np.asarray(dense)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fc":
        raise PlanError(f"a floating-point matrix is factorised, not {matrix.dtype} of shape {matrix.shape}")
    if by == "hierarchical":
        return hierarchical(matrix, patterns, on_event)
    if by == "alternating":
        return alternating(matrix, patterns, seed=seed, on_event=on_event)
    if by == "gradient":
        return gradient(matrix, patterns, seed=seed, on_event=on_event)
    raise PlanError(f"by must be one of {', '.join(ALGORITHMS)}, not {by!r}")

"""Triangular and masked products; several heads of the first operand may share one of the second."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...arguments import need
from ...errors import PlanError
from ...schemes_db.symmetry import Triangle
from ..arrays import Array, Matrix
from ..causal.block_masks import scheme_reason
from ..codegen.certified import SchemeLike, certified
from ..plans.decisions import AUTO, executor_for
from ..plans.families import removal_of
from ..request import Request, structures_of
from ..structure import DENSE, BlockMask
from .arrays import multiply, request_for

STRATEGIES = ("vendor", "strips", "kernel")
"""Strategies without a program."""


def strategy_text(strategy: str | None, scheme: str | None) -> str | None:
    """Return the argument of `run_triangular` for a strategy and a scheme, of which either may be None.

    Raises:
        PlanError: the strategy is unknown, or takes no scheme.
    """
    need(str | None, strategy=strategy, scheme=scheme)
    if strategy is not None and strategy not in STRATEGIES:
        if reason := removal_of(strategy, "causal", "cpu"):
            raise PlanError(reason)
        raise PlanError(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}; a scheme goes to scheme=")
    if strategy is not None and scheme is not None:
        raise PlanError(f"{strategy} takes no scheme; leave strategy or scheme out")
    return strategy or scheme


def triangular_heads(a: Array, b: Array, triangle: Triangle, strategy: str | None) -> Array:
    """Compute the triangular product of a (..., H, m, k) and b (..., Hb, k, n), H a multiple of Hb: arrays or tensors.

    Tensors are of a GPU.
    """
    left, right = grouped(a, b)
    request = request_for(left, right, structures=structures_of(triangle))
    return ungrouped(run_triangular(request, left, right, strategy), a, b)


def grouped(a: Array, b: Array) -> tuple[Array, Array]:
    """Split the heads of `a` so that those of `b` broadcast, if b has fewer (GQA)."""
    if a.ndim < 3 or b.ndim < 3:
        return a, b
    many, few = a.shape[-3], b.shape[-3]
    if few in (many, 1) or many == 1:
        return a, b
    if few == 0 or many % few:
        raise PlanError(f"{many} heads can't share {few}: the first must be a multiple of the second")
    return a.reshape(*a.shape[:-3], few, many // few, *a.shape[-2:]), b[..., :, None, :, :]


def ungrouped(c: Array, a: Array, b: Array) -> Array:
    """Return the product of grouped operands with its heads merged to one dimension again."""
    grouped_heads = c.ndim > max(a.ndim, b.ndim)
    return c.reshape(*c.shape[:-4], c.shape[-4] * c.shape[-3], *c.shape[-2:]) if grouped_heads else c


def run_triangular(request: Request, a: Any, b: Any, strategy: str | None) -> Any:
    """Compute the triangular product of a request, by a strategy or scheme name, or by the planner's choice."""
    if strategy is None or strategy in STRATEGIES:
        return executor_for(request, AUTO, strategy=strategy).run(a, b)
    return executor_for(request, strategy).run(a, b)


def masked(a: Matrix, b: Matrix, kinds: npt.NDArray[np.int8], scheme: SchemeLike | None = None) -> Matrix:
    """Compute A B in the blocks that `kinds` want, zero elsewhere.

    Raises:
        PlanError: the operands do not fit each other or the mask, or the scheme is for another mask.
    """
    request = Request.of(a, b, structures=(DENSE, DENSE, BlockMask.of(kinds)))
    if scheme is None:
        product: Matrix = executor_for(request).run(a, b)
        return product
    proven = certified(scheme)
    if reason := scheme_reason(proven.target, kinds):
        raise PlanError(reason)
    return multiply(a, b, proven)

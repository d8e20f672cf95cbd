"""The entry points of all triangular products on every device, and of all masked products of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..codegen.certified import SchemeLike
from ..plans.decisions import AUTO, executor_for
from ..request import Request
from ..structure import DENSE, BlockMask

Matrix = npt.NDArray[Any]

STRATEGIES = ("vendor", "strips", "kernel")
"""Strategies without a program."""


def run_triangular(request: Request, a: Any, b: Any, out: Any = None, way: str | None = None) -> Any:
    """Compute the triangular product of a request, by a strategy or scheme name, or by the planner's choice."""
    if way is None or way in STRATEGIES:
        return executor_for(request, AUTO, strategy=way).run(a, b, out)
    return executor_for(request, way).run(a, b, out)


def masked(a: Matrix, b: Matrix, kinds: npt.NDArray[np.int8], scheme: SchemeLike | None = None) -> Matrix:
    """Compute A B in the blocks that `kinds` want, zero elsewhere.

    Raises:
        PlanError: the operands do not fit each other or the mask, or the scheme is for another mask.
    """
    request = Request.of(a, b, structures=(DENSE, DENSE, BlockMask.of(kinds)))
    product: Matrix = executor_for(request, AUTO if scheme is None else scheme).run(a, b)
    return product

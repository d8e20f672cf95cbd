"""The public product by a block low-rank matrix."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.masks import refuse_masks
from ..factored import BATCH_FIRST, layout_of_order, product_dtype, request_of
from ..plans import AUTO, PREDICT, planned
from ..request import Layout, layout_of
from .block_low_rank_matrix import BlockLowRankMatrix

Matrix = npt.NDArray[Any]


def matmul(
    matrix: BlockLowRankMatrix,
    x: npt.ArrayLike,
    *,
    strategy: str | None = None,
    effort: str = PREDICT,
    max_workspace: int | None = None,
    max_extra_bytes: int = 0,
) -> Matrix:
    """Compute Y = X W^T (..., rows) for x (..., cols).

    `strategy` names the only strategy to use ("strided", "dense"); `effort="measure"` times the best
    candidates once (see `lcma tune`). `max_workspace` bounds the bytes besides operands and result,
    `max_extra_bytes` those by which the matrix may be expanded ("dense" needs them, and expands it at every call). An
    x whose rows are not contiguous is copied first. float16 is computed in float32.

    Raises:
        PlanError: x does not fit the matrix or has another dtype, or no candidate meets the limits.
    """
    if (torch := sys.modules.get("torch")) is not None and torch.is_tensor(x):
        raise PlanError("x is a torch tensor; use lcma.MonarchLinear or its like, or pass x.numpy()")
    refuse_masks(x=x)
    x = np.asarray(x)
    rows, cols = matrix.shape
    if x.ndim < 1 or x.shape[-1] != cols:
        raise PlanError(f"x must have shape (..., {cols}) for {matrix!r}, not {x.shape}")
    if x.dtype.name != matrix.dtype:
        raise PlanError(f"x is {x.dtype} and the matrix {matrix.dtype}; convert one with .astype")
    own = product_dtype(matrix.dtype, "cpu")
    factors = matrix.astype(own).factors
    columns = x.astype(own, copy=False).reshape(-1, cols).T
    if columns.size and layout_of(columns) is not Layout.COLUMNS:
        columns = np.asfortranarray(columns)
    layout = layout_of_order(BATCH_FIRST)
    request = request_of(
        matrix.structure,
        columns.shape[1],
        own,
        layouts=(layout, layout),
        max_workspace=max_workspace,
        max_extra_bytes=max_extra_bytes,
    )
    product: Matrix = planned(request, AUTO, None, strategy, effort)[1].run(factors, columns)
    return product.T.reshape(*x.shape[:-1], rows).astype(x.dtype, copy=False)

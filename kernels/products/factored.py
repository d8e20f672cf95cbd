"""The public product by a factored matrix, and such a matrix as an operator for scipy's iterative methods."""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ...arguments import INTEGER, need
from ...errors import PlanError
from ...schemes_db.masks import refuse_masks
from ..arrays import Matrix
from ..factored import BATCH_FIRST, BATCH_LAST, check_order, factored_request, layout_of_order, product_dtype
from ..out import check_out
from ..plans.decisions import PREDICT, executor_for
from ..request import Layout, layout_of
from ..structured.matrix import FactoredMatrix


def matmul(
    matrix: FactoredMatrix,
    x: npt.ArrayLike,
    layout: str = BATCH_FIRST,
    *,
    out: Matrix | None = None,
    strategy: str | None = None,
    effort: str = PREDICT,
    max_workspace: int | None = None,
    max_extra_bytes: int = 0,
) -> Matrix:
    """Compute Y = X W^T for x (..., cols) of layout "bsf" (batch first), W X for x (cols, batch) of "bsl" (batch last).

    The result is (..., rows), or (rows, batch). `strategy` names the only strategy to use ("strided", "slabs",
    "widened", "dense"); `effort="measure"` times the best candidates once (see `lcma tune`). `max_workspace` bounds the
    bytes besides operands and result, `max_extra_bytes` those by which the matrix may be expanded ("dense" needs them,
    and expands it at every call). An x whose rows or columns are not contiguous is copied first. float16 is computed in
    float32.

    Raises:
        PlanError: x does not fit the matrix or has another dtype, or no candidate meets the limits.
    """
    need(FactoredMatrix, matrix=matrix)
    need(str, layout=layout, effort=effort)
    need(str | None, strategy=strategy)
    need(INTEGER | None, least=0, max_workspace=max_workspace)
    need(INTEGER, least=0, max_extra_bytes=max_extra_bytes)
    check_order(layout)
    if (torch := sys.modules.get("torch")) is not None and torch.is_tensor(x):
        raise PlanError("x is a torch tensor; use lcma.KSLinear, lcma.MonarchLinear or its like, or pass x.numpy()")
    refuse_masks(x=x)
    x = np.asarray(x)
    (rows, cols), first = matrix.shape, layout == BATCH_FIRST
    if x.shape[-1:] != (cols,) if first else x.ndim != 2 or x.shape[0] != cols:
        raise PlanError(_misfit(x.shape, matrix, layout))
    columns = x.reshape(-1, cols).T if first else x
    shape = (*x.shape[:-1], rows) if first else (rows, x.shape[1])
    if x.dtype.name != matrix.dtype:
        raise PlanError(f"x is {x.dtype} and the matrix {matrix.dtype}; convert one with .astype")
    own = product_dtype(matrix.dtype, "cpu")
    widened = own != matrix.dtype
    factors, columns = (matrix.astype(own) if widened else matrix).factors, columns.astype(own, copy=False)
    if columns.size and layout_of(columns) is Layout.SCATTERED:
        columns = np.array(columns, order="F" if first else "C")
    target = None
    if out is not None:
        check_out(out, shape, x.dtype)
        if not out.flags.c_contiguous:
            raise PlanError("out must be C-ordered; pass np.ascontiguousarray(out), or leave it out")
        target = out.reshape(-1, rows).T if first else out
    request = factored_request(
        matrix.structure,
        columns.shape[1],
        own,
        layout,
        layouts=(_plain(columns, layout), layout_of_order(layout)),
        max_workspace=max_workspace,
        max_extra_bytes=max_extra_bytes,
    )
    executor = executor_for(request, strategy=strategy, effort=effort)
    product = executor.run(factors, columns, None if widened else target)
    if out is None:
        product = product.astype(x.dtype, copy=False)
        return cast(Matrix, product.T.reshape(shape) if first else product)
    if widened:
        cast(Matrix, target)[...] = product
    return out


def _plain(columns: Matrix, layout: str) -> Layout:
    """Return the layout of X (cols, batch); for a single row or column, which has both, that of the order."""
    return layout_of_order(layout) if {0, 1} & {*columns.shape} else layout_of(columns)


def _misfit(shape: tuple[int, ...], matrix: FactoredMatrix, layout: str) -> str:
    cols = matrix.shape[1]
    wanted, other = (f"(..., {cols})", BATCH_LAST) if layout == BATCH_FIRST else (f"({cols}, batch)", BATCH_FIRST)
    mend = f'; pass layout="{other}"' if cols in shape and len(shape) == 2 else ""
    return f"x of layout {layout} must have shape {wanted} for {matrix!r}, not {shape}{mend}"


def linear_operator(matrix: FactoredMatrix) -> Any:
    """Return a `scipy.sparse.linalg.LinearOperator` of W; its adjoint multiplies by copies of the factors.

    Operands are converted to the matrix's dtype. Products are planned by their number of columns.

    Raises:
        PlanError: scipy is not installed, or the CPU does not support the matrix's dtype.
    """
    need(FactoredMatrix, matrix=matrix)
    try:
        from scipy.sparse.linalg import LinearOperator
    except ImportError:
        raise PlanError("a linear operator is scipy's: pip install 'lcma[scipy]'") from None
    if matrix.dtype in ("float16", "bfloat16"):
        raise PlanError(f"{matrix.dtype} is not multiplied on a processor; convert the matrix to float32")
    adjoint = matrix.adjoint

    def product(factors: FactoredMatrix, x: Any) -> Any:
        refuse_masks(x=x)
        x = np.asarray(x)
        if np.iscomplexobj(x) and not matrix.dtype.startswith("complex"):
            return product(factors, x.real) + 1j * product(factors, x.imag)
        x = x.astype(matrix.dtype, copy=False)
        return matmul(factors, x if x.ndim == 1 else np.ascontiguousarray(x), *(() if x.ndim == 1 else (BATCH_LAST,)))

    return LinearOperator(
        matrix.shape,
        dtype=np.dtype(matrix.dtype),
        matvec=lambda x: product(matrix, np.asanyarray(x).reshape(-1)),
        matmat=lambda x: product(matrix, x),
        rmatvec=lambda x: product(adjoint, np.asanyarray(x).reshape(-1)),
        rmatmat=lambda x: product(adjoint, x),
    )

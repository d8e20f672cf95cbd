"""A Kronecker-sparse matrix as an operator for scipy's iterative methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arguments import need
from ...errors import PlanError
from ...schemes_db.masks import refuse_masks
from ..factored import BATCH_LAST
from ..structured.matrix import FactoredMatrix
from .factored import matmul


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

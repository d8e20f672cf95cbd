"""The executor of exact products: checks, batches, `out`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import PlanError
from ..arrays import Matrix
from ..cpu.executor import MatrixExecutor
from ..out import check_out
from ..overflow import largest_magnitude, require_within
from ..request import BITS, WIDE
from .bits import BitMatrix
from .integers import empty_integers


class ExactExecutor(MatrixExecutor):
    """Multiplies `BitMatrix` over GF(2), else arrays of integers. Thread-safe."""

    def run(self, a: Any, b: Any, out: Any = None) -> Any:
        """See `Executor.run`. The two words of a result (out_dtype int128) are the last axis.

        Raises:
            PlanError: the operands do not match the request, or an entry exceeds the stated `max_abs`.
        """
        request = self.request
        bits = request.dtype == BITS
        self._check("a", a, (*request.batch_a, request.m, request.k))
        self._check("b", b, (*request.batch_b, request.k, request.n))
        shape = (*request.batch, request.m, request.n)
        if out is None:
            result: Any = BitMatrix.zeros(*shape) if bits else empty_integers(shape, request.out_dtype)
        else:
            result = out
            self._check_out(out, shape)
        if self._core is None:
            (result.words if bits else result)[...] = 0
            return result
        left, right, target = (x.words if bits else x for x in (a, b, result))
        apart = out is not None and any(np.may_share_memory(target, x) for x in (left, right))
        apart |= bits and target.strides[-1] != target.itemsize
        made = np.empty(target.shape, target.dtype) if apart else target
        self.multiply(self._core, _rows(left), _rows(right), made)
        if apart:
            target[...] = made
        return result

    def _check(self, label: str, matrix: Any, shape: tuple[int, ...]) -> None:
        request = self.request
        if request.dtype == BITS:
            if not isinstance(matrix, BitMatrix):
                raise PlanError(f"{label} must be a BitMatrix; make one with BitMatrix.from_array")
        elif not isinstance(matrix, np.ndarray) or matrix.dtype != request.storage:
            found = getattr(matrix, "dtype", type(matrix).__name__)
            raise PlanError(f"{label} is {found}; the plan is for arrays of {request.storage}: convert with .astype")
        if matrix.shape != shape:
            raise PlanError(f"{label} is of shape {matrix.shape}; the plan is for {shape}: plan again")
        if request.max_abs is not None and matrix.size:
            require_within(label, largest_magnitude(matrix), request.max_abs)

    def _check_out(self, out: Any, shape: tuple[int, ...]) -> None:
        request = self.request
        if request.dtype == BITS:
            if not isinstance(out, BitMatrix) or out.shape != shape:
                raise PlanError(f"out must be a BitMatrix of shape {shape}")
            check_out(out.words, out.words.shape, request.result)
            return
        check_out(out, (*shape, 2) if request.out_dtype == WIDE else shape, request.result)


def _rows(matrix: Matrix) -> Matrix:
    """Return the matrix with contiguous rows, as the kernels require."""
    good = matrix.strides[-1] == matrix.itemsize and matrix.flags.aligned and matrix.strides[-2] >= 0
    return matrix if good else np.ascontiguousarray(matrix)

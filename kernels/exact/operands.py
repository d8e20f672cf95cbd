"""The operands of exact products on a processor: bit matrices over GF(2), else arrays of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import PlanError
from ..arrays import Matrix
from ..cpu.executor import ArrayOperands
from ..out import check_out
from ..overflow import largest_magnitude, require_within
from ..request import BITS, WIDE, Request
from .bits import BitMatrix
from .integers import empty_integers


class ExactOperands(ArrayOperands):
    """`BitMatrix` over GF(2), else arrays of integers; the two words of a result of int128 are its last axis."""

    def checked(self, request: Request, a: Any, b: Any, out: Any) -> tuple[Matrix, Matrix]:
        _check(request, "a", a, (*request.batch_a, request.m, request.k))
        _check(request, "b", b, (*request.batch_b, request.k, request.n))
        if out is not None:
            _check_out(request, out, (*request.batch, request.m, request.n))
        return _rows(self.written(a)), _rows(self.written(b))

    def empty(self, request: Request) -> Any:
        shape = *request.batch, request.m, request.n
        return BitMatrix.zeros(*shape) if request.dtype == BITS else empty_integers(shape, request.out_dtype)

    def written(self, out: Any) -> Matrix:
        return out.words if isinstance(out, BitMatrix) else out

    def is_late(self, request: Request, a: Matrix, b: Matrix, out: Matrix) -> bool:
        shared = np.may_share_memory(out, a) or np.may_share_memory(out, b)
        return shared or (request.dtype == BITS and out.strides[-1] != out.itemsize)


def _check(request: Request, label: str, matrix: Any, shape: tuple[int, ...]) -> None:
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


def _check_out(request: Request, out: Any, shape: tuple[int, ...]) -> None:
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

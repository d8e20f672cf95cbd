"""The expected result of a product: the classical one, restricted as its request or its scheme's target says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..kernels.bfloat16 import bfloat16_bits, float32_of
from ..schemes_db import Kind, Scheme

if TYPE_CHECKING:
    from ..kernels import Request

Matrix = npt.NDArray[Any]


def true_product(request: Request, scheme: Any, a: Any, b: Any, wide: bool = True) -> Any:
    """The classical product of arrays, or of tensors of a GPU; integers in the dtype of C.

    `wide`: in float64 (complex128); else in the request's dtype, which is what a library computes. `scheme`
    is what the plan was made for: a scheme with a structured target computes that.
    """
    on_gpu = not isinstance(a, np.ndarray)
    target = structured_scheme(scheme) if request.is_dense else None
    if on_gpu and target is None:
        left, right = (x.double() if wide else x for x in (a, b))
        return _cut_by_request(request, left, right)
    if on_gpu:
        a, b = (x.double().cpu().numpy() for x in (a, b))
    left, right = (_wide(x, request) if wide else _own(x, request) for x in (a, b))
    product = _cut_by_request(request, left, right) if target is None else structured_product(target, left, right)
    if not wide and request.dtype == "bfloat16" and not on_gpu:
        product = float32_of(bfloat16_bits(product))
    return product


def relative_error(request: Request, product: Any, truth: Any) -> float:
    """||product - truth|| / ||truth|| in the Frobenius norm."""
    if not isinstance(product, np.ndarray):
        if isinstance(truth, np.ndarray):
            return relative_error(request, product.double().cpu().numpy(), truth)
        norm = float(truth.norm())
        difference = float((product.double() - truth).norm())
    else:
        norm = float(np.linalg.norm(truth))
        difference = float(np.linalg.norm(_wide(product, request) - truth))
    return difference / norm if norm else difference


def structured_scheme(scheme: Any) -> Scheme | None:
    """The scheme, where it is one with absent or triangular blocks."""
    found = scheme
    while isinstance(found, tuple | list):  # (scheme, certificate), or such an entry a level
        found = found[0]
    return found if isinstance(found, Scheme) and not found.target.is_general else None


def _cut_by_request(request: Request, left: Any, right: Any) -> Any:
    if request.triangle is None:
        return left @ right
    from ..kernels.causal.naive import plain

    return plain(left, right, request.triangle)


def _wide(matrix: Matrix, request: Request) -> Matrix:
    if request.exact:
        return matrix.astype(request.result)
    if request.dtype == "bfloat16" and matrix.dtype == np.uint16:
        return float32_of(matrix).astype(np.float64)
    return matrix.astype(np.complex128 if np.iscomplexobj(matrix) else np.float64)


def _own(matrix: Matrix, request: Request) -> Matrix:
    return float32_of(matrix) if matrix.dtype == np.uint16 else matrix


def structured_product(scheme: Scheme, a: Matrix, b: Matrix) -> Matrix:
    """The classical product with the parts that the target calls absent cut away, sizes in any relation to the grid."""
    target = scheme.target
    left, right = (_cut(matrix, kinds) for matrix, kinds in ((a, target.a), (b, target.b)))
    return _cut(left @ right, target.c)


def _cut(matrix: Matrix, kinds: tuple[tuple[Kind, ...], ...]) -> Matrix:
    """Zero what is absent; block borders stand at multiples of the rounded-up block size."""
    if all(kind is Kind.FULL for row in kinds for kind in row):
        return matrix
    rows, cols = (-(-size // parts) for size, parts in zip(matrix.shape[-2:], (len(kinds), len(kinds[0])), strict=True))
    i, j = np.arange(matrix.shape[-2]), np.arange(matrix.shape[-1])
    kind = np.array(kinds, dtype=np.int64)[(i // rows)[:, None], (j // cols)[None, :]]
    row, col = (i % rows)[:, None], (j % cols)[None, :]
    keep = (kind == Kind.FULL) | ((kind == Kind.LOWER) & (row >= col)) | ((kind == Kind.UPPER) & (row <= col))
    return np.where(keep, matrix, np.zeros((), matrix.dtype))

"""Operands of int8 products on a GPU: read where they are, or copied with zeros to what a kernel reads."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..arrays import Tensor
from ..codegen.maps import LinearMap
from ..codegen.triton_text import Direction
from .combine import Combination
from .int8 import SEGMENT, has_whole_rows, multiply_by_vendor, multiply_stack, vendor_sizes
from .naive import combine
from .packed_product import PackedArithmetic

COPY = Combination(LinearMap(1, (), (((1, 0),),)), Direction.TO_STACK, ((0, 0),), integers=True)
"""A copy of a matrix of any strides into a larger one, of zeros past its edges."""


def inner_size(k: int) -> int:
    """Return k in whole segments of 16 bytes: the length of the rows that our kernel reads."""
    return -(-k // SEGMENT) * SEGMENT


def packed_columns(b: Tensor) -> Tensor:
    """Return the columns of B (k, n) of any strides as rows (n, k'): a view of B where our kernel can read it."""
    k, n = b.shape
    if has_whole_rows(b.mT):
        return b.mT
    columns = b.new_empty((n, inner_size(k)))
    _copy(b, columns.mT)
    return columns


def multiply(a: Tensor, packed: Tensor, out: Tensor) -> None:
    """Compute out (m, n) int32 = A B by our kernel for A (m, k) int8 and the result of `packed_columns`."""
    rows = a
    if not has_whole_rows(a):
        rows = a.new_empty((a.shape[0], inner_size(a.shape[1])))
        _copy(a, rows)
    multiply_stack(rows.unsqueeze(0), packed.unsqueeze(0), out.unsqueeze(0))


def vendor_operand(b: Tensor, copies: bool) -> Tensor:
    """Return what torch's `_int_mm` multiplies instead of B (k, n): B itself, or a copy that is stored by columns.

    A B whose sizes its rules do not permit is copied with zeros to (k', n'), one that is not stored by columns if
    `copies`.
    """
    k, n = b.shape
    _, inner, cols = vendor_sizes(1, k, n)
    if (k, n) == (inner, cols) and (not copies or b.stride(0) == 1):
        return b
    turned = b.new_empty((cols, inner)).mT
    _copy(b, turned)
    return turned


def _copy(matrix: Tensor, into: Tensor) -> None:
    combine(COPY, matrix.unsqueeze(0), into[None, None])


BY_VENDOR = PackedArithmetic(
    lambda a, b, right, out: multiply_by_vendor(a, right, out), partial(vendor_operand, copies=True)
)
"""torch's `_int_mm` of a B stored by columns: one stored by rows is copied first."""

BY_VENDOR_IN_PLACE = replace(BY_VENDOR, pack=partial(vendor_operand, copies=False))
"""torch's `_int_mm` of B as it is stored, unless its rules need zeros: for products shorter than a copy."""

BY_KERNEL = PackedArithmetic(lambda a, b, columns, out: multiply(a, columns, out), packed_columns)
"""Our kernel, for any sizes."""

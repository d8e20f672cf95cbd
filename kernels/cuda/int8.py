"""Products of int8 matrices into int32 on a GPU: by torch's `_int_mm`, or by our kernel, which takes any sizes.

Sums must fit int32: those of Hopper's tensor cores wrap, but those of older ones, as Triton uses them, saturate.
Operands are read where they are, or copied with zeros to what a product reads.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from ..arrays import Tensor, torch
from ..codegen.maps import LinearMap
from ..codegen.triton_text import Combine, Direction
from .combine import Combination
from .launch import device_for
from .naive import combine, int8_product, takes_triton
from .packed_product import PackedArithmetic
from .shape import SEGMENT
from .tiles import GROUP as GROUP
from .tiles import Tile, launch

TILE = Tile(128, 256, 128, 8, 3)
"""The tile of our kernel on Hopper: the fastest for products over GF(2), 1.30e15 operations per second on an H200."""

SMALL_TILE = Tile(64, 128, 128, 4, 3)
"""For at most 64 rows of A, and for GPUs with less shared memory. Not measured."""

CAPABILITY = (9, 0)
"""Compute capability of the first GPUs whose shared memory and registers fit TILE."""

LEAST_ROWS, UNIT = 32, 8
"""torch._int_mm requires more than 16 rows, and k and n in multiples of 8."""


def tile_for(m: int, device: Any) -> Tile:
    """Return the tile of our kernel for so many rows of A on a torch device."""
    device = device_for(device)
    if m <= SMALL_TILE.m or (device.type == "cuda" and torch.cuda.get_device_capability(device) < CAPABILITY):
        return SMALL_TILE
    return TILE


def launch_int8(a: Tensor, b: Tensor, out: Tensor, tile: Tile, parity: bool = False) -> None:
    """Compute out (m, n) int32 = A B^T by our kernel, for A (m, k) and B (n, k) of int8 stored by rows.

    `parity`: out (m, n / 32) has the lowest bits of 32 elements in a word, and n is a multiple of 32.
    """
    from .int8_kernel import multiply_int8

    (m, k), n = a.shape, b.shape[0]
    grid = (-(-m // tile.m) * -(-n // tile.n),)
    arguments = a, b, out, m, n, k, a.stride(0), b.stride(0), *out.stride()
    launch(multiply_int8, grid, out, arguments, tile, GROUP=GROUP, PARITY=parity)


def vendor_sizes(m: int, k: int, n: int) -> tuple[int, int, int]:
    """Return the sizes, zeros included, that torch's `_int_mm` multiplies instead."""
    return m if m > LEAST_ROWS // 2 else LEAST_ROWS, -(-k // UNIT) * UNIT, -(-n // UNIT) * UNIT


def multiply_by_vendor(a: Tensor, right: Tensor, out: Tensor) -> None:
    """Compute out (m, n) int32 = A B by torch's `_int_mm`, of a padded copy of A where its rules need it.

    `right` is the result of `vendor_operand` of B.
    """
    (m, k), n = a.shape, out.shape[1]
    rows, inner, cols = vendor_sizes(m, k, n)
    left = a if (m, k) == (rows, inner) else torch.nn.functional.pad(a, (0, inner - k, 0, rows - m))
    if (m, n) == (rows, cols) and out.is_contiguous() and not out.is_meta:
        torch._int_mm(left, right, out=out)
    else:
        out.copy_(torch._int_mm(left, right)[:m, :n])


COPY = Combination(Combine(LinearMap(1, (), (((1, 0),),)), Direction.TO_STACK, ((0, 0),), integers=True))
"""A copy of a matrix of any strides into a larger one, of zeros past its edges."""


def inner_size(k: int) -> int:
    """Return k in whole segments of 16 bytes: the length of the rows that our kernel reads."""
    return -(-k // SEGMENT) * SEGMENT


def whole_rows(x: Tensor) -> Tensor:
    """Return a matrix (rows, k) of any strides as our kernel reads it: by rows of whole segments, or copied to such."""
    aligned = x.is_meta or not x.data_ptr() % SEGMENT
    if x.stride(1) == 1 and not x.stride(0) % SEGMENT and not x.shape[1] % SEGMENT and aligned:
        return x
    rows = x.new_empty((x.shape[0], inner_size(x.shape[1])))
    _copy(x, rows)
    return rows


def packed_columns(b: Tensor) -> Tensor:
    """Return the columns of B (k, n) as rows: a view of B where our kernel can read it."""
    return whole_rows(b.mT)


def multiply(a: Tensor, packed: Tensor, out: Tensor) -> None:
    """Compute out (m, n) int32 = A B by our kernel for A (m, k) int8 and the result of `packed_columns`.

    On CPU tensors that Triton does not interpret by plain torch: the variant that tests run.
    """
    rows = whole_rows(a)
    if takes_triton(a):
        launch_int8(rows, packed, out, tile_for(len(a), out.device))
    else:
        out.copy_(int8_product(rows, packed))


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

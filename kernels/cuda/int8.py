"""Products of int8 matrices into int32 on a GPU: by torch's `_int_mm`, or by our kernel, which takes any sizes.

Sums must fit int32: those of Hopper's tensor cores wrap, but those of older ones, as Triton uses them, saturate.
"""

from __future__ import annotations

from typing import Any

from ..arrays import Tensor, torch
from .launch import device_for
from .naive import stack_product, takes_triton
from .tiles import GROUP as GROUP
from .tiles import Tile, launch

TILE = Tile(128, 256, 128, 8, 3)
"""The tile of our kernel on Hopper: the fastest for products over GF(2), 1.30e15 operations per second on an H200."""

SMALL_TILE = Tile(64, 128, 128, 4, 3)
"""For at most 64 rows of A, and for GPUs with less shared memory. Not measured."""

CAPABILITY = (9, 0)
"""Compute capability of the first GPUs whose shared memory and registers fit TILE."""

SEGMENT = 16
"""Bytes that rows are multiples of, so that threads read whole segments; others are copied."""

LEAST_ROWS, UNIT = 32, 8
"""torch._int_mm requires more than 16 rows, and k and n in multiples of 8."""


def tile_for(m: int, device: Any) -> Tile:
    """Return the tile of our kernel for so many rows of A on a torch device."""
    device = device_for(device)
    if m <= SMALL_TILE.m or (device.type == "cuda" and torch.cuda.get_device_capability(device) < CAPABILITY):
        return SMALL_TILE
    return TILE


def multiply_stack(lefts: Tensor, rights: Tensor, out: Tensor, tile: Tile | None = None) -> None:
    """Compute out (count, m, n) int32 = A_r B_r^T for stacks of A_r (m, k) and B_r (n, k) of int8, stored by rows.

    On CPU tensors that Triton does not interpret by plain torch: the variant that tests run.
    """
    if not takes_triton(lefts):
        out.copy_(stack_product(lefts, rights))
        return
    from .int8_kernel import multiply_int8

    count, m, n = out.shape
    tile = tile or tile_for(m, out.device)
    grid = (count * -(-m // tile.m) * -(-n // tile.n),)
    strides = *lefts.stride()[:2], *rights.stride()[:2], *out.stride()
    launch(multiply_int8, grid, out, (lefts, rights, out, m, n, lefts.shape[2], *strides), tile, GROUP=GROUP)


def vendor_sizes(m: int, k: int, n: int) -> tuple[int, int, int]:
    """Return the sizes, zeros included, that torch's `_int_mm` multiplies instead."""
    return m if m > LEAST_ROWS // 2 else LEAST_ROWS, -(-k // UNIT) * UNIT, -(-n // UNIT) * UNIT


def multiply_by_vendor(a: Tensor, right: Tensor, out: Tensor) -> None:
    """Compute out (m, n) int32 = A B by torch's `_int_mm`, of a padded copy of A where its rules need it.

    `right` is the result of `int8_operands.vendor_operand` of B.
    """
    (m, k), n = a.shape, out.shape[1]
    rows, inner, cols = vendor_sizes(m, k, n)
    left = a if (m, k) == (rows, inner) else torch.nn.functional.pad(a, (0, inner - k, 0, rows - m))
    if (m, n) == (rows, cols) and out.is_contiguous() and not out.is_meta:
        torch._int_mm(left, right, out=out)
    else:
        out.copy_(torch._int_mm(left, right)[:m, :n])


def has_whole_rows(x: Tensor) -> bool:
    """Return whether our kernel reads the rows of a matrix in whole segments."""
    return bool(
        x.stride(1) == 1
        and not x.stride(0) % SEGMENT
        and not x.shape[1] % SEGMENT
        and (x.is_meta or not x.data_ptr() % SEGMENT)
    )

"""The gradient of a factor's parameters: sums over the batch of outer products, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..request import Layout, layout_of
from .blocks import as_blocks

Matrix = npt.NDArray[Any]
Tensor = Any

SLAB = 1024
"""Columns of the batch that are summed by one GEMM; the sums of all slabs are added in their order."""


TENSOR_SLAB = 8192
"""The same on a GPU."""


def outer_blocks(grad: Matrix, x: Matrix, a: int, d: int) -> Matrix:
    """dW (a, d, b, c) with dW[i, j] = grad[i, :, j] x[i, :, j]^T, for grad (a b d, n) and x (a c d, n).

    Sums over n are formed by slabs in a fixed order, in the dtype of the operands.
    """
    b, c = len(grad) // (a * d), len(x) // (a * d)
    total = np.zeros((a, d, b, c), np.result_type(grad, x))
    for start in range(0, grad.shape[1], SLAB):
        left, right = (_readable(y[:, start : start + SLAB], d) for y in (grad, x))
        total += as_blocks(left, a, b, d) @ as_blocks(right, a, c, d).swapaxes(2, 3)
    return total


def _readable(matrix: Matrix, d: int) -> Matrix:
    """The slab as a GEMM can read its blocks: a copy where rows are not contiguous and blocks are interleaved."""
    found = layout_of(matrix)
    return matrix if found is Layout.ROWS or (found is Layout.COLUMNS and d == 1) else np.ascontiguousarray(matrix)


def outer_tensors(grad: Tensor, x: Tensor, a: int, d: int) -> Tensor:
    """`outer_blocks` of tensors: sums of half precision are held in float32, slab after slab."""
    import torch

    wide = torch.float32 if grad.dtype in (torch.float16, torch.bfloat16) else grad.dtype
    b, c = grad.shape[0] // (a * d), x.shape[0] // (a * d)
    total = grad.new_zeros((a * d, b, c), dtype=wide)
    for start in range(0, grad.shape[1], TENSOR_SLAB):
        left, right = (y[:, start : start + TENSOR_SLAB].contiguous() for y in (grad, x))
        blocks = as_blocks(left, a, b, d).reshape(a * d, b, -1), as_blocks(right, a, c, d).reshape(a * d, c, -1)
        total += torch.bmm(blocks[0], blocks[1].mT).to(wide)
    return total.view(a, d, b, c).to(grad.dtype)

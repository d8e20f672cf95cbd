"""The Triton kernel of products with few columns: every weight is read once, by whole rows.

Imports triton: only what launches the kernel imports this.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def multiply_columns(
    weights,
    x,
    y,
    m,
    k,
    n,
    x_block,
    x_row,
    x_col,
    y_block,
    y_row,
    y_col,
    M: tl.constexpr,
    K: tl.constexpr,
    N: tl.constexpr,
):
    """y[b, i, s] = sum over j of weights[b, i, j] x[b, j, s], for n <= N columns s and any strides of x and y.

    weights (count, m, k) are contiguous. Program (i, b) computes M rows of block b and sums in float32, in a fixed
    order.
    """
    b = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * M + tl.arange(0, M)
    s = tl.arange(0, N)
    here_i, here_s = i < m, s < n
    total = tl.zeros((M, N), tl.float32)
    rows = weights + (b * m + i.to(tl.int64)) * k
    for start in range(0, k, K):
        j = start + tl.arange(0, K)
        left = tl.load(rows[:, None] + j[None, :], here_i[:, None] & (j < k)[None, :], 0.0).to(tl.float32)
        right = tl.load(
            x + b * x_block + j.to(tl.int64)[None, :] * x_row + s[:, None] * x_col,
            here_s[:, None] & (j < k)[None, :],
            0.0,
        ).to(tl.float32)
        total += tl.sum(left[:, None, :] * right[None, :, :], 2)
    place = y + b * y_block + i.to(tl.int64)[:, None] * y_row + s[None, :] * y_col
    tl.store(place, total.to(y.dtype.element_ty), here_i[:, None] & here_s[None, :])

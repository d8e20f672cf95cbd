"""A Triton kernel of products of int8 into int32. Its reference is `naive.int8_product`.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..codegen.triton_products import int8_sums, tile_start


@triton.jit
def multiply_int8(
    a, b, c, m, n, k, a_stride, b_stride, c_row, c_col, GROUP: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
    K: tl.constexpr,
):  # fmt: skip
    """Compute C = A B^T of a (m, k) and b (n, k) int8, c (m, n) int32."""
    row0, col0 = tile_start(tl.program_id(0), m, n, GROUP, M, N)
    total = int8_sums(a, b, row0, col0, m, n, k, a_stride, b_stride, M, N, K)
    i, j = row0 + tl.arange(0, M), col0 + tl.arange(0, N)
    place = c + i.to(tl.int64)[:, None] * c_row + j.to(tl.int64)[None, :] * c_col
    tl.store(place, total, mask=(i < m)[:, None] & (j < n)[None, :])  # [M, N]

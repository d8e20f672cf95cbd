"""A Triton kernel of products of int8 into int32. Its reference is `naive.stack_product`.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..codegen.triton_products import int8_sums, tile_start


@triton.jit
def multiply_int8(
    a, b, c, m, n, k, a_slab, a_stride, b_slab, b_stride, c_slab, c_row, c_col, GROUP: tl.constexpr, M: tl.constexpr,
    N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Compute C_r = A_r B_r^T for stacks of a (m, k) and b (n, k) int8, c (m, n) int32.

    The grid has the tiles of all C_r, a product after the other.
    """
    tiles = tl.cdiv(m, M) * tl.cdiv(n, N)
    slab = (tl.program_id(0) // tiles).to(tl.int64)
    row0, col0 = tile_start(tl.program_id(0) % tiles, m, n, GROUP, M, N)
    total = int8_sums(a + slab * a_slab, b + slab * b_slab, row0, col0, m, n, k, a_stride, b_stride, M, N, K)
    i, j = row0 + tl.arange(0, M), col0 + tl.arange(0, N)
    place = c + slab * c_slab + i.to(tl.int64)[:, None] * c_row + j.to(tl.int64)[None, :] * c_col
    tl.store(place, total, mask=(i < m)[:, None] & (j < n)[None, :])  # [M, N]

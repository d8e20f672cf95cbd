"""A Triton kernel of products of int8 into int32, or into the parities of the results.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..codegen.triton_parts import tile_start


@triton.jit
def multiply_int8(
    a, b, c, m, n, k, a_stride, b_stride, c_row, c_col, GROUP: tl.constexpr, PARITY: tl.constexpr, M: tl.constexpr,
    N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Compute C = A B^T, c (m, n) int32, for a (m, k) and b (n, k) int8 stored by rows.

    PARITY: c (m, n / 32) has the lowest bits of 32 results in a word; n is a multiple of 32. Programs are ordered in
    groups of GROUP rows of tiles, which share tiles of b in caches.
    """
    row0, col0 = tile_start(tl.program_id(0), m, n, GROUP, M, N)
    i = (row0 + tl.arange(0, M)).to(tl.int64)
    j = (col0 + tl.arange(0, N)).to(tl.int64)
    t = tl.arange(0, K)
    lefts = a + i[:, None] * a_stride + t[None, :]
    rights = b + j[None, :] * b_stride + t[:, None]
    total = tl.zeros((M, N), tl.int32)
    # total: the sum over the first `start` elements of k, exact modulo 2^32; lefts and rights are at `start`.
    for start in range(0, k, K):
        here = t < k - start
        x = tl.load(lefts, (i < m)[:, None] & here[None, :], 0)  # [M, K]
        y = tl.load(rights, here[:, None] & (j < n)[None, :], 0)  # [K, N]
        total = tl.dot(x, y, total, out_dtype=tl.int32)
        lefts += K
        rights += K
    if PARITY:
        bits = tl.reshape(total & 1, (M, N // 32, 32))
        total = tl.sum(bits << tl.arange(0, 32)[None, None, :], axis=2)
        j, n = (col0 // 32 + tl.arange(0, N // 32)).to(tl.int64), n // 32
    # [M, N] or [M, N / 32]
    tl.store(c + i[:, None] * c_row + j[None, :] * c_col, total, (i < m)[:, None] & (j < n)[None, :])

"""Parts of Triton kernels of products: the order of tiles, triangles of them, and sums of products of int8.

Imports triton: imported only by kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def tile_start(q, m, n, GROUP: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """Return the first row and column of tile q of C: groups of GROUP rows of tiles share columns of B."""
    down, across = tl.cdiv(m, M), tl.cdiv(n, N)
    top = q // (GROUP * across) * GROUP
    group = tl.minimum(down - top, GROUP)
    return (top + q % (GROUP * across) % group) * M, q % (GROUP * across) // group * N


@triton.jit
def keep_triangle(x, line, along, UPPER: tl.constexpr):
    """Return a tile, zero where `along` is before `line` (UPPER) or after it.

    What is outside may be anything, NaN included: it is replaced, not multiplied.
    """
    return tl.where((along >= line) if UPPER else (along <= line), x, 0.0).to(x.dtype)


@triton.jit
def int8_sums(
    a, b, row0, col0, m, n, k, a_stride, b_stride, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):  # fmt: skip
    """Return the tile of A B^T from this row and column on, a (m, k) and b (n, k) int8, in int32."""
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
    return total

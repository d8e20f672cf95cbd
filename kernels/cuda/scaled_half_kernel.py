"""Triton kernels of products in tf32 as one product of scaled float16, and in tf32 itself.

Imports triton: imported only to launch the kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..codegen.triton_parts import tile_start


@triton.jit
def half_gemm(
    a, b, row_shifts, col_shifts, c, m, k, n, c_row, c_col, programs, DESCRIBED: tl.constexpr, GROUP: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Compute C = A B in float32 from descriptors of A (m, k) and B (k, n) in float16, summed in float32.

    Rows and columns of C are divided by powers of two. Program p computes the tiles p, p + programs, ... A tile that
    extends beyond k reads zeros. DESCRIBED: `c` is a descriptor of C, in quarters of a tile, and has no strides.
    """
    tiles = tl.cdiv(m, M) * tl.cdiv(n, N)
    # The tiles program, program + programs, ... before t are stored. Flattened, the loads of the next tile begin early.
    for t in tl.range(tl.program_id(0), tiles, programs, flatten=True):
        row0, col0 = tile_start(t, m, n, GROUP, M, N)
        total = tl.zeros((M, N), tl.float32)
        # total: the sum over the first `inner` elements of k.
        for inner in range(0, k, K):
            total = tl.dot(a.load([row0, inner]), b.load([inner, col0]), total)  # [M, K], [K, N]
        # In quarters: a whole tile of float32 would need too many registers and too much shared memory.
        left, right = _halved(total, M, N)
        parts = _halved(left, M, N // 2) + _halved(right, M, N // 2)
        i = row0 + tl.arange(0, M)
        down = -tl.load(row_shifts + i, mask=i < m, other=0)  # [M]
        # The first `part` quarters of the tile's columns are stored.
        for part in tl.static_range(4):
            first = col0 + part * (N // 4)
            j = first + tl.arange(0, N // 4)
            across = -tl.load(col_shifts + j, mask=j < n, other=0)  # [N / 4]
            # 2^(down + across) by two factors, each a power by row times one by column: all are normal numbers.
            scaled = parts[part] * (_power(down >> 1)[:, None] * _power(across >> 1)[None, :])
            scaled *= _power(down - (down >> 1))[:, None] * _power(across - (across >> 1))[None, :]
            if DESCRIBED:
                c.store([row0, first], scaled)  # [M, N / 4]
            else:
                place = c + i.to(tl.int64)[:, None] * c_row + j.to(tl.int64)[None, :] * c_col
                tl.store(place, scaled, mask=(i < m)[:, None] & (j < n)[None, :])  # [M, N / 4]


@triton.jit
def _halved(x, M: tl.constexpr, N: tl.constexpr):
    """Return the left and the right half of a tile."""
    return x.reshape(M, 2, N // 2).permute(0, 2, 1).split()


@triton.jit
def _power(exponent):
    """Return 2^exponent for exponents of -126 to 127."""
    return ((exponent + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def _as_tf32(x):
    """Round float32 to tf32, to nearest; magnitudes that would become infinite are truncated, NaN stays NaN."""
    # tf32 lacks the lowest 13 bits of float32: half of their unit (0x1000) is added, then they are cleared (-0x2000).
    bits = x.to(tl.int32, bitcast=True)
    size = bits & 0x7FFFFFFF
    # From 0x7F7FF000 on, half a unit below the end of the range, rounding up would give an infinity (0x7F800000).
    bits = tl.where(size < 0x7F7FF000, (bits + 0x1000) & -0x2000, bits)
    # A NaN may have all its set bits among those 13: the quiet bit keeps it one.
    bits = tl.where(size > 0x7F800000, bits | 0x400000, bits)
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def guarded_gemm(
    flag, a, b, c, m, k, n, a_row, a_col, b_row, b_col, c_row, c_col, programs, GROUP: tl.constexpr, M: tl.constexpr,
    N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Compute C = A B of float32 matrices in tf32 if the flag is set; else return at once."""
    tiles = tl.where(tl.load(flag) != 0, tl.cdiv(m, M) * tl.cdiv(n, N), 0)  # one number []
    # The tiles program, program + programs, ... before t are stored; there are none without the flag.
    for t in range(tl.program_id(0), tiles, programs):
        row0, col0 = tile_start(t, m, n, GROUP, M, N)
        i, j = (row0 + tl.arange(0, M)).to(tl.int64), (col0 + tl.arange(0, N)).to(tl.int64)
        total = tl.zeros((M, N), tl.float32)
        # total: the sum over the first `start` elements of k.
        for start in range(0, k, K):
            inner = start + tl.arange(0, K).to(tl.int64)
            left = a + i[:, None] * a_row + inner[None, :] * a_col
            right = b + inner[:, None] * b_row + j[None, :] * b_col
            x = _as_tf32(tl.load(left, mask=(i < m)[:, None] & (inner < k)[None, :], other=0.0))  # [M, K]
            y = _as_tf32(tl.load(right, mask=(inner < k)[:, None] & (j < n)[None, :], other=0.0))  # [K, N]
            total = tl.dot(x, y, total, input_precision="tf32")
        place = c + i[:, None] * c_row + j[None, :] * c_col
        tl.store(place, total, mask=(i < m)[:, None] & (j < n)[None, :])  # [M, N]

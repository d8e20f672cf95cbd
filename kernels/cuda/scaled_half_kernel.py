"""Triton kernels of products in tf32 as one product of scaled float16, and of the check behind it.

Imports triton: imported only to launch the kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..codegen.triton_parts import tile_start


@triton.jit
def _fold(parts, sums, count, length, first, ROWS: tl.constexpr, SIZE: tl.constexpr):
    """Store the sums over rows of `parts` (count, length), from element `first` on."""
    at = first + tl.arange(0, SIZE)
    row = tl.arange(0, ROWS)
    total = tl.zeros((ROWS, SIZE), tl.float32)
    # total: by element and row modulo ROWS, the sums over the first `start` rows.
    for start in range(0, count, ROWS):
        one = start + row
        place = one.to(tl.int64)[:, None] * length + at[None, :]
        total += tl.load(parts + place, mask=(one < count)[:, None] & (at < length)[None, :], other=0.0)  # [ROWS, SIZE]
    tl.store(sums + at, tl.sum(total, 0), mask=at < length)  # [SIZE]


@triton.jit
def fold_sums(
    across, weights, parts, sums, across_count, inner, parts_count, lines, ROWS: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Sum the results of the tiles of `split_pairs`: over lines to `weights` (inner), along k to `sums` (lines)."""
    first = tl.program_id(0) * SIZE
    if tl.program_id(1) == 0:
        _fold(across, weights, across_count, inner, first, ROWS, SIZE)
    else:
        _fold(parts, sums, parts_count, lines, first, ROWS, SIZE)


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
def _loses(sums, weighted, total, others, LOST: tl.constexpr, ROUNDING: tl.constexpr):
    """Return whether lines with these sums may lose more than ROUNDING of `weighted`, or hold what is not finite.

    `total` is the sum of the other operand, and `others` the number of its lines. A line of zeros loses nothing.
    """
    total = total + tl.zeros_like(sums)
    kept = (LOST * (total + others * sums) <= ROUNDING * weighted) & (total + sums < float("inf"))
    return (kept == 0) & (sums != 0.0) & (total != 0.0)


@triton.jit
def _check(
    x, line_step, along_step, sums, weights, flag, first, lines, inner, others, LOST: tl.constexpr,
    ROUNDING: tl.constexpr, LINES: tl.constexpr, ALONG: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Set the flag if one of LINES lines may lose too much: see `check`."""
    total = tl.zeros((SIZE,), tl.float32)
    least = tl.full((SIZE,), float("inf"), tl.float32)
    # total and least: by element modulo SIZE, the sum and the minimum of the first `start` weights.
    for start in range(0, inner, SIZE):
        at = start + tl.arange(0, SIZE)
        total += tl.load(weights + at, mask=at < inner, other=0.0)  # [SIZE]
        least = tl.minimum(least, tl.load(weights + at, mask=at < inner, other=float("inf")))  # [SIZE]
    line = first + tl.arange(0, LINES)
    one = tl.load(sums + line, mask=line < lines, other=0.0)  # [LINES]
    whole = tl.sum(total, 0)
    bad = _loses(one, tl.min(least, 0) * one, whole, others, LOST, ROUNDING)
    # The least weight does not show enough: the weights of all elements do, or the line loses too much.
    last = tl.where(tl.max(bad.to(tl.int32), 0) > 0, inner, 0)
    weighted = tl.zeros((LINES, ALONG), tl.float32)
    # weighted: by line and element modulo ALONG, the weighted sums of the first `start` elements.
    for start in range(0, last, ALONG):
        along = start + tl.arange(0, ALONG)
        inside = (line < lines)[:, None] & (along < last)[None, :]
        place = line.to(tl.int64)[:, None] * line_step + along.to(tl.int64)[None, :] * along_step
        value = tl.abs(tl.load(x + place, mask=inside, other=0.0).to(tl.float32))  # [LINES, ALONG]
        weighted += value * tl.load(weights + along, mask=along < last, other=0.0)[None, :]  # [1, ALONG]
    bad &= _loses(one, tl.sum(weighted, 1), whole, others, LOST, ROUNDING)
    tl.store(flag, 1, mask=tl.max(bad.to(tl.int32), 0) > 0)  # one number []


@triton.jit
def check(
    a, b, sums_a, sums_b, weights_a, weights_b, flag, m, k, n, a_row, b_row, LOST: tl.constexpr, ROUNDING: tl.constexpr,
    LINES: tl.constexpr, ALONG: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Set the flag if a row or column of C may lose too much.

    a (m, k) and b (k, n) are scaled float16, stored by rows; `sums` are of the magnitudes of the rows of A and columns
    of B, `weights` (k) of those across them. The weighted sum of a line is at least its sum times the least weight;
    elements are read only where that does not suffice. The grid is (blocks of LINES lines, 2): of A, then of B.
    """
    first = tl.program_id(0) * LINES
    if tl.program_id(1) == 0:
        _check(a, a_row, 1, sums_a, weights_b, flag, first, m, k, n, LOST, ROUNDING, LINES, ALONG, SIZE)
    else:
        _check(b, 1, b_row, sums_b, weights_a, flag, first, n, k, m, LOST, ROUNDING, LINES, ALONG, SIZE)


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

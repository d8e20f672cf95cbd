"""Triton kernels of products in e4m3 with block scales; `fp8_naive` is their reference.

Imports triton: imported only to launch the kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _rounded(values, EMULATED: tl.constexpr):
    """Round float32 values to e4m3; values beyond 448 are cut to it, and NaN stays.

    EMULATED: by integer arithmetic, as in `e4m3.bits_of`: Triton's interpreter converts to 8 bits wrongly.
    """
    if EMULATED:
        word = values.to(tl.uint32, bitcast=True)
        magnitude = (word & 0x7FFFFFFF).to(tl.int32)
        exponent = magnitude >> 23
        fraction = (magnitude & 0x7FFFFF) | 0x800000
        dropped = tl.minimum(20 + tl.maximum(121 - exponent, 0), 26)
        halves = (tl.full(dropped.shape, 1, tl.int32) << (dropped - 1)) - 1
        kept = (fraction + halves + ((fraction >> dropped) & 1)) >> dropped
        bits = tl.where(exponent >= 121, ((exponent - 121) << 3) + kept, kept)
        bits = tl.where(magnitude > 0x7F800000, 0x7F, tl.minimum(bits, 0x7E))
        bits = bits | ((word >> 24) & 0x80).to(tl.int32)
        return bits.to(tl.uint8).to(tl.float8e4nv, bitcast=True)
    return values.to(tl.float8e4nv)


@triton.jit
def _values(x):
    """Return e4m3 numbers as float32 by integer arithmetic: Triton's interpreter converts NaN wrongly."""
    bits = x.to(tl.uint8, bitcast=True).to(tl.int32)
    exponent, fraction = (bits >> 3) & 15, bits & 7
    normal = (((exponent + 120) << 23) | (fraction << 20)).to(tl.float32, bitcast=True)
    magnitude = tl.where(exponent == 0, fraction.to(tl.float32) * 0.001953125, normal)
    magnitude = tl.where((bits & 0x7F) == 0x7F, float("nan"), magnitude)
    return tl.where(bits >= 0x80, -magnitude, magnitude)


@triton.jit
def _dot(x, y, EMULATED: tl.constexpr):
    """Return the product of e4m3 tiles x (M, K) and y (N, K), transposed, summed by tensor cores.

    EMULATED: of their values in float32, for Triton's interpreter.
    """
    if EMULATED:
        return tl.dot(_values(x), _values(y).T, input_precision="ieee")
    return tl.dot(x, y.T)


@triton.jit
def _scales_of(largest, LARGEST: tl.constexpr, FLOOR: tl.constexpr):
    """Return scales and their inverses; see `fp8_naive.scale_of`. Divisions are rounded to nearest."""
    floored = tl.maximum(largest, FLOOR)
    top = tl.full(largest.shape, LARGEST, tl.float32)
    scale = tl.where(largest == 0, 1.0, tl.div_rn(floored, top))
    return scale, tl.where(largest == 0, 1.0, tl.div_rn(top, floored))


@triton.jit
def _finite_magnitude(values):
    """Return |x| of finite float32 values, 0 for others."""
    magnitude = tl.abs(values)
    return tl.where(magnitude < float("inf"), magnitude, 0.0)


@triton.jit
def _scaled_down(values, inverse):
    """Return values times the inverse scales, NaN for values that are not finite."""
    return tl.where(tl.abs(values) < float("inf"), values * inverse, float("nan"))


@triton.jit
def quantise(
    x,
    bits,
    scales,
    lines,
    length,
    line_step,
    along_step,
    pitch,
    scale_line,
    scale_along,
    BLOCKS: tl.constexpr,
    LINES: tl.constexpr,
    ALONG: tl.constexpr,
    LARGEST: tl.constexpr,
    FLOOR: tl.constexpr,
    EMULATED: tl.constexpr,
):
    """Quantise ALONG elements of LINES lines of x (lines, length): rows of A or columns of B.

    bits (lines, pitch) has zeros beyond `length`. Every line has a scale at scales[line scale_line + block
    scale_along]; with BLOCKS all LINES lines of a program share one, and `line` counts groups of them.
    """
    line = tl.program_id(0) * LINES + tl.arange(0, LINES)
    along = tl.program_id(1) * ALONG + tl.arange(0, ALONG)
    inside = (line < lines)[:, None] & (along < length)[None, :]
    place = line.to(tl.int64)[:, None] * line_step + along.to(tl.int64)[None, :] * along_step
    values = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    largest = tl.max(_finite_magnitude(values), 1)
    block = tl.program_id(1).to(tl.int64) * scale_along
    if BLOCKS:
        shared = tl.zeros((LINES,), tl.float32) + tl.max(largest, 0)
        scale, inverse = _scales_of(shared, LARGEST, FLOOR)
        tl.store(scales + block + tl.program_id(0).to(tl.int64) * scale_line, tl.max(scale, 0))
    else:
        scale, inverse = _scales_of(largest, LARGEST, FLOOR)
        tl.store(scales + block + line.to(tl.int64) * scale_line, scale, mask=line < lines)
    found = _rounded(_scaled_down(values, inverse[:, None]), EMULATED)
    tl.store(bits + line.to(tl.int64)[:, None] * pitch + along[None, :], found, mask=(line < lines)[:, None])


@triton.jit
def _tile_of(m, n, GROUP: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """Return the first row and column of this program's tile of C: groups of GROUP rows of tiles share columns of B."""
    down, across = tl.cdiv(m, M), tl.cdiv(n, N)
    q = tl.program_id(0)
    top = q // (GROUP * across) * GROUP
    group = tl.minimum(down - top, GROUP)
    return (top + q % (GROUP * across) % group) * M, q % (GROUP * across) // group * N


@triton.jit
def scaled_gemm(
    a,
    b,
    a_scales,
    b_scales,
    c,
    m,
    n,
    blocks,
    b_scale_pitch,
    c_row,
    c_col,
    GROUP: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    EMULATED: tl.constexpr,
):
    """Compute C = A B of quantised operands, with `blocks` blocks of K elements along k.

    `a` and `b` are descriptors of bits (m, k) and (n, k). a_scales (blocks, m), b_scales (groups of K columns,
    b_scale_pitch). Tensor cores accumulate e4m3 with fewer bits than float32: the sum of a block is multiplied by its
    two scales and added in float32. N divides K, so that a tile has one scale of B per block.
    """
    row0, col0 = _tile_of(m, n, GROUP, M, N)
    i = row0 + tl.arange(0, M)
    of_a, of_b = a_scales + i, b_scales + (col0 // K).to(tl.int64) * b_scale_pitch
    total = tl.zeros((M, N), tl.float32)
    for block in range(blocks):
        x, y = a.load([row0, block * K]), b.load([col0, block * K])
        scale = tl.load(of_a, mask=i < m, other=0.0) * tl.load(of_b + block)
        total += _dot(x, y, EMULATED) * scale[:, None]
        of_a += m
    j = col0 + tl.arange(0, N)
    place = c + i.to(tl.int64)[:, None] * c_row + j.to(tl.int64)[None, :] * c_col
    tl.store(place, total.to(c.dtype.element_ty), mask=(i < m)[:, None] & (j < n)[None, :])


@triton.jit
def direct_gemm(
    a,
    b,
    b_scales,
    c,
    m,
    k,
    n,
    a_row,
    a_col,
    pitch,
    b_scale_pitch,
    c_row,
    c_col,
    GROUP: tl.constexpr,
    WHOLE: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    LARGEST: tl.constexpr,
    FLOOR: tl.constexpr,
    EMULATED: tl.constexpr,
):
    """Compute C = A B for A (m, k) that every program quantises as it reads it, and the bits of B (n, pitch).

    As `quantise` and `scaled_gemm`, without the bits and scales of A in memory. WHOLE: K divides k.
    """
    row0, col0 = _tile_of(m, n, GROUP, M, N)
    i, j, inner = row0 + tl.arange(0, M), col0 + tl.arange(0, N), tl.arange(0, K)
    of_b = b_scales + (col0 // K).to(tl.int64) * b_scale_pitch
    # Rows and columns beyond the matrices read the last one, and are not stored.
    rows = a + tl.minimum(i, m - 1).to(tl.int64)[:, None] * a_row
    cols = b + tl.minimum(j, n - 1).to(tl.int64)[:, None] * pitch
    total = tl.zeros((M, N), tl.float32)
    for block in range(tl.cdiv(k, K)):
        along = block * K + inner
        place = rows + along.to(tl.int64)[None, :] * a_col
        if WHOLE:
            values = tl.load(place).to(tl.float32)
        else:
            values = tl.load(place, mask=(along < k)[None, :], other=0.0).to(tl.float32)
        y = tl.load(cols + along[None, :])
        scale, inverse = _scales_of(tl.max(_finite_magnitude(values), 1), LARGEST, FLOOR)
        x = _rounded(_scaled_down(values, inverse[:, None]), EMULATED)
        scale = scale * tl.load(of_b + block)
        total += _dot(x, y, EMULATED) * scale[:, None]
    place = c + i.to(tl.int64)[:, None] * c_row + j.to(tl.int64)[None, :] * c_col
    tl.store(place, total.to(c.dtype.element_ty), mask=(i < m)[:, None] & (j < n)[None, :])

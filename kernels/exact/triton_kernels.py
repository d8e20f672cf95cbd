"""Triton kernels over GF(2), words to elements of one byte and back and sums of blocks, and of integers as digits.

Digits have 8 bits. Words are int32 here, two per 64-bit word; element (i, j) is bit j % 32 of word j // 32.
Imports triton: imported only to launch the kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def unpack_bits(
    words, out, rows, width, stride, padded, out_stride, TURN: tl.constexpr, R: tl.constexpr, W: tl.constexpr
):
    """Unpack words (rows, width) to out (padded, 32 width) int8, zero from row `rows` on; TURN: transposed."""
    i = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)
    w = tl.program_id(1) * W + tl.arange(0, W)
    x = tl.load(words + i[:, None] * stride + w[None, :], (i < rows)[:, None] & (w < width)[None, :], 0)  # [R, W]
    bits = ((x[:, :, None] >> tl.arange(0, 32)[None, None, :]) & 1).to(tl.int8)
    elements = tl.reshape(bits, (R, 32 * W))
    j = (tl.program_id(1) * 32 * W + tl.arange(0, 32 * W)).to(tl.int64)
    if TURN:
        place = out + j[:, None] * out_stride + i[None, :]
        tl.store(place, tl.trans(elements), (j < 32 * width)[:, None] & (i < padded)[None, :])  # [32 W, R]
    else:
        place = out + i[:, None] * out_stride + j[None, :]
        tl.store(place, elements, (i < padded)[:, None] & (j < 32 * width)[None, :])  # [R, 32 W]


@triton.jit
def pack_parity(values, out, rows, cols, stride, width, out_stride, R: tl.constexpr, W: tl.constexpr):
    """Pack the lowest bits of values (rows, cols) to out (rows, width), zero beyond the last column."""
    i = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)
    j = tl.program_id(1) * 32 * W + tl.arange(0, 32 * W)
    x = tl.load(values + i[:, None] * stride + j[None, :], (i < rows)[:, None] & (j < cols)[None, :], 0)  # [R, 32 W]
    bits = tl.reshape(x.to(tl.int32) & 1, (R, W, 32))
    packed = tl.sum(bits << tl.arange(0, 32)[None, None, :], axis=2)
    w = tl.program_id(1) * W + tl.arange(0, W)
    tl.store(out + i[:, None] * out_stride + w[None, :], packed, (i < rows)[:, None] & (w < width)[None, :])  # [R, W]


@triton.jit
def sum_blocks(
    source, target, starts, source_rows, source_cols, target_rows, target_cols, height, width, rows, cols, stride,
    out_rows, out_cols, out_stride, R: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """Set block s of target to the XOR of blocks p of source, starts[s] <= p < starts[s + 1].

    Blocks have height x width words. Block p begins at (source_rows[p], source_cols[p]), block s at (target_rows[s],
    target_cols[s]); words beyond an edge of source (rows, cols) count as zero, of target (out_rows, out_cols) are
    not written.
    """
    s = tl.program_id(2)
    i = (tl.program_id(1) * R + tl.arange(0, R)).to(tl.int64)
    j = tl.program_id(0) * W + tl.arange(0, W)
    inside = (i < height)[:, None] & (j < width)[None, :]
    total = tl.zeros((R, W), source.dtype.element_ty)
    # total: the sum over the blocks from starts[s] to p.
    for p in range(tl.load(starts + s), tl.load(starts + s + 1)):  # one number []
        row, col = tl.load(source_rows + p) + i, tl.load(source_cols + p) + j  # one number []
        here = inside & (row < rows)[:, None] & (col < cols)[None, :]
        total ^= tl.load(source + row[:, None] * stride + col[None, :], here, 0)  # [R, W]
    row, col = tl.load(target_rows + s) + i, tl.load(target_cols + s) + j  # one number []
    here = inside & (row < out_rows)[:, None] & (col < out_cols)[None, :]
    tl.store(target + row[:, None] * out_stride + col[None, :], total, here)  # [R, W]


@triton.jit
def split_digits(
    x, out, rows, cols, row_stride, col_stride, depth, out_stride, modulus,
    DIGITS: tl.constexpr, REVERSED: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """Set out[i, t depth + j] to digit t (-128 to 127) of x[i, j]; REVERSED: digit DIGITS - 1 - t.

    Columns from cols to depth are zero. x is first reduced to the residue of least magnitude if the modulus is not 0.
    """
    i = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)
    j = (tl.program_id(1) * C + tl.arange(0, C)).to(tl.int64)
    here = (i < rows)[:, None] & (j < cols)[None, :]
    value = tl.load(x + i[:, None] * row_stride + j[None, :] * col_stride, here, 0).to(tl.int64)  # [R, C]
    if modulus > 0:
        value = value % modulus
        half = modulus // 2
        value = tl.where(value > half, value - modulus, value)
        value = tl.where(value < -half, value + modulus, value)
    inside = (i < rows)[:, None] & (j < depth)[None, :]
    # The digits u < t are stored: x is the sum of digit u times 256^u, plus value 256^t.
    for t in tl.static_range(DIGITS):
        low = value & 255
        low = tl.where(low > 127, low - 256, low)
        value = (value >> 8) + tl.where(low < 0, 1, 0)
        place = DIGITS - 1 - t if REVERSED else t
        tl.store(out + i[:, None] * out_stride + place * depth + j[None, :], low.to(tl.int8), inside)  # [R, C]


@triton.jit
def join_digits(
    sums, out, m, n, sums_rows, sums_cols, out_stride, modulus, ADD: tl.constexpr, TERMS: tl.constexpr,
    R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """Set out (m, n) int64 to the sum of sums[t] 256^t, sums (TERMS, sums_rows, sums_cols) int32; ADD: added to out.

    Modulo n the result is 0 <= c < n: multiplying by 256 is eight doublings, each reduced, since n may be 2^62.
    """
    i = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)
    j = (tl.program_id(1) * C + tl.arange(0, C)).to(tl.int64)
    here = (i < m)[:, None] & (j < n)[None, :]
    place = sums + i[:, None] * sums_cols + j[None, :]
    size = sums_rows.to(tl.int64) * sums_cols
    total = tl.zeros((R, C), tl.int64)
    half = modulus // 2
    # total: the `step` highest terms by Horner's rule, the lowest of them counted once.
    for step in tl.static_range(TERMS):
        term = tl.load(place + (TERMS - 1 - step) * size, here, 0).to(tl.int64)  # [R, C]
        if modulus > 0:
            # |total| stays at most half of the modulus: 2^62 times 256 would overflow, two times half of it does not.
            for _ in tl.static_range(8):
                total += total
                total = tl.where(total > half, total - modulus, total)
                total = tl.where(total < -half, total + modulus, total)
            total += term % modulus
            total = tl.where(total > half, total - modulus, total)
            total = tl.where(total < -half, total + modulus, total)
        else:
            total = total * 256 + term
    target = out + i[:, None] * out_stride + j[None, :]
    if ADD:
        total += tl.load(target, here, 0)  # [R, C]
    if modulus > 0:
        total = tl.where(total < 0, total + modulus, total)
        total = tl.where(total >= modulus, total - modulus, total)
    tl.store(target, total, here)  # [R, C]

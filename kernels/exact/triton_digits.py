"""Triton kernels that split integers into digits of 8 bits and join the sums of their products.

Imports triton: imported only to launch the kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl


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

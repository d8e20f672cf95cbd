"""The Triton kernels of products whose intermediate results are codes of 8 bits with shared scales (quantization.py).

Codes (blocks, n, rank) and biased exponents (blocks, groups, n) are uint8 and contiguous.

Imports triton: imported only to launch the kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..codegen.triton_e4m3 import rounded


@triton.jit
def exponent_of(most, FP8: tl.constexpr):
    """Return the biased exponents of groups from the bits (int32) of their largest magnitudes."""
    LARGEST: tl.constexpr = 8 if FP8 else 6
    MANTISSA: tl.constexpr = 0x600000 if FP8 else 0x7E0000
    found = tl.maximum((most >> 23) - LARGEST + ((most & 0x7FFFFF) > MANTISSA).to(tl.int32), 1)
    found = tl.where(most == 0, 127, found)
    return tl.where(most >= 0x7F800000, 255, found)


@triton.jit
def encode(values, exponent, FP8: tl.constexpr):
    """Return the codes (uint8) of float32 values with their biased exponents (int32), which broadcast."""
    scaled = values * ((254 - exponent) << 23).to(tl.float32, bitcast=True)
    if FP8:
        code = rounded(scaled).to(tl.uint8, bitcast=True).to(tl.int32)
    else:
        code = (scaled + 12582912.0).to(tl.int32, bitcast=True) - 0x4B400000
    return tl.where(exponent == 255, 0, code & 0xFF).to(tl.uint8)


@triton.jit
def decode(codes, exponent, FP8: tl.constexpr):
    """Return the float32 values of codes [N, K] with biased exponents [N]; NaN where the exponent is 255."""
    values = codes.to(tl.float8e4nv if FP8 else tl.int8, bitcast=True).to(tl.float32)
    return values * (exponent.to(tl.int32) << 23).to(tl.float32, bitcast=True)[:, None]


@triton.jit
def multiply_into_codes(
    x,
    v,
    codes,
    exponents,
    n,
    rank,
    p,
    inputs,
    x_row,
    x_col,
    v_input,
    v_output,
    v_row,
    groups,
    FP8: tl.constexpr,
    N: tl.constexpr,
    C: tl.constexpr,
    G: tl.constexpr,
    P: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Store the codes of z[b, s, i] = sum over j of v[l, k, i, j] x[l p + j, s] for blocks b = k inputs + l.

    v has strides v_input, v_output, v_row and one; x has any. A program computes N columns s and C ranks i of one
    block, which are C / G groups.
    """
    b = tl.program_id(2).to(tl.int64)
    l, k = b % inputs, b // inputs
    s = tl.program_id(1).to(tl.int64) * N + tl.arange(0, N)
    i = tl.program_id(0) * C + tl.arange(0, C)
    here_s, here_i = s < n, i < rank
    rows = v + l * v_input + k * v_output + i.to(tl.int64) * v_row
    given = x + l * p * x_row + s * x_col
    total = tl.zeros((N, C), tl.float32)
    for start in range(0, p, P):
        j = start + tl.arange(0, P)
        left = tl.load(given[:, None] + j.to(tl.int64)[None, :] * x_row, here_s[:, None] & (j < p)[None, :], 0.0)
        right = tl.load(rows[:, None] + j[None, :], here_i[:, None] & (j < p)[None, :], 0.0)
        total = tl.dot(left, right.T, total, input_precision=PRECISION)
    values = tl.reshape(total, (N, C // G, G))
    exponent = exponent_of(tl.max(values.to(tl.int32, bitcast=True) & 0x7FFFFFFF, 2), FP8)  # [N, C / G]
    code = tl.reshape(encode(values, exponent[:, :, None], FP8), (N, C))
    tl.store(codes + ((b * n + s) * rank)[:, None] + i[None, :], code, here_s[:, None] & here_i[None, :])
    g = tl.program_id(0) * (C // G) + tl.arange(0, C // G)
    place = exponents + (b * groups + g)[None, :] * n + s[:, None]
    tl.store(place, exponent.to(tl.uint8), here_s[:, None] & (g < groups)[None, :])


@triton.jit
def multiply_codes(
    u,
    codes,
    exponents,
    y,
    n,
    rank,
    q,
    inputs,
    groups,
    y_block,
    y_row,
    y_col,
    FP8: tl.constexpr,
    N: tl.constexpr,
    Q: tl.constexpr,
    G: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Compute y[k, o, s] = sum over l and i of u[k, o, l, i] z[k inputs + l, s, i] from the codes of z.

    u (blocks, q, inputs, rank) is contiguous. A step of the sum is a group of G ranks of one block of inputs; its
    values are converted to the dtype of u.
    """
    k = tl.program_id(2).to(tl.int64)
    s = tl.program_id(1).to(tl.int64) * N + tl.arange(0, N)
    o = tl.program_id(0) * Q + tl.arange(0, Q)
    here_s, here_o = s < n, o < q
    total = tl.zeros((N, Q), tl.float32)
    for step in range(0, inputs * groups):
        l, g = step // groups, step % groups
        i = g * G + tl.arange(0, G)
        here_i = i < rank
        b = k * inputs + l
        code = tl.load(codes + ((b * n + s) * rank)[:, None] + i[None, :], here_s[:, None] & here_i[None, :], 0)
        exponent = tl.load(exponents + (b * groups + g) * n + s, here_s, 127)
        right = tl.load(
            u + (((k * q + o) * inputs + l) * rank)[:, None] + i[None, :], here_o[:, None] & here_i[None, :], 0.0
        )
        left = decode(code, exponent, FP8).to(u.dtype.element_ty)
        total = tl.dot(left, right.T, total, input_precision=PRECISION)
    place = y + k * y_block + o.to(tl.int64)[None, :] * y_row + s[:, None] * y_col
    tl.store(place, total.to(y.dtype.element_ty), here_s[:, None] & here_o[None, :])


@triton.jit
def mix_codes(
    scales,
    codes,
    exponents,
    mixed,
    mixed_exponents,
    n,
    rank,
    groups,
    B1: tl.constexpr,
    B2: tl.constexpr,
    FP8: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    G: tl.constexpr,
):
    """Store the codes of BLAST's z'[k, s, i] = sum over l of scales[i, k, l] z[l, s, i], from the codes of z.

    scales (rank, B2, B1) is contiguous. A program computes N columns s and a group of G ranks of all B2 blocks; M is B2
    rounded up to a power of two.
    """
    s = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    g = tl.program_id(1)
    i = g * G + tl.arange(0, G)
    k = tl.arange(0, M)
    here_s, here_i, here_k = s < n, i < rank, k < B2
    factors = scales + (i.to(tl.int64)[None, :] * B2 + k[:, None]) * B1
    total = tl.zeros((M, N, G), tl.float32)
    for l in range(B1):
        code = tl.load(codes + ((l * n + s) * rank)[:, None] + i[None, :], here_s[:, None] & here_i[None, :], 0)
        inner = decode(code, tl.load(exponents + (l * groups + g) * n + s, here_s, 127), FP8)  # [N, G]
        factor = tl.load(factors + l, here_k[:, None] & here_i[None, :], 0.0).to(tl.float32)  # [M, G]
        total += factor[:, None, :] * inner[None, :, :]
    exponent = exponent_of(tl.max(total.to(tl.int32, bitcast=True) & 0x7FFFFFFF, 2), FP8)  # [M, N]
    code = encode(total, exponent[:, :, None], FP8)
    here = here_k[:, None] & here_s[None, :]
    place = mixed + ((k[:, None] * n + s[None, :]) * rank)[:, :, None] + i[None, None, :]
    tl.store(place, code, here[:, :, None] & here_i[None, None, :])
    tl.store(mixed_exponents + (k[:, None] * groups + g) * n + s[None, :], exponent.to(tl.uint8), here)

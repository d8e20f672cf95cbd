"""Triton kernels of products in e4m3 with block scales; `fp8_naive` is their reference.

Imports triton: imported only to launch the kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..codegen.triton_e4m3 import dot_transposed, finite_magnitude, rounded, scaled_down, scales_of
from ..codegen.triton_products import tile_start


@triton.jit
def quantise(
    x, bits, scales, lines, length, line_step, along_step, pitch, scale_line, scale_along, BLOCKS: tl.constexpr,
    LINES: tl.constexpr, ALONG: tl.constexpr,
):  # fmt: skip
    """Quantise ALONG elements of LINES lines of x (lines, length): rows of A or columns of B.

    bits (lines, pitch) has zeros beyond `length`. Every line has a scale at scales[line scale_line + block
    scale_along]; with BLOCKS all LINES lines of a program share one, and `line` counts groups of them.
    """
    line = tl.program_id(0) * LINES + tl.arange(0, LINES)
    along = tl.program_id(1) * ALONG + tl.arange(0, ALONG)
    inside = (line < lines)[:, None] & (along < length)[None, :]
    place = line.to(tl.int64)[:, None] * line_step + along.to(tl.int64)[None, :] * along_step
    values = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)  # [LINES, ALONG]
    largest = tl.max(finite_magnitude(values), 1)
    block = tl.program_id(1).to(tl.int64) * scale_along
    if BLOCKS:
        shared = tl.zeros((LINES,), tl.float32) + tl.max(largest, 0)
        scale, inverse = scales_of(shared)
        tl.store(scales + block + tl.program_id(0).to(tl.int64) * scale_line, tl.max(scale, 0))  # one number []
    else:
        scale, inverse = scales_of(largest)
        tl.store(scales + block + line.to(tl.int64) * scale_line, scale, mask=line < lines)  # [LINES]
    found = rounded(scaled_down(values, inverse[:, None]))
    # [LINES, ALONG]
    tl.store(bits + line.to(tl.int64)[:, None] * pitch + along[None, :], found, mask=(line < lines)[:, None])


@triton.jit
def scaled_gemm(
    a, b, a_scales, b_scales, c, m, n, blocks, b_scale_pitch, c_slab, c_row, c_col, GROUP: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Compute C_r = A_r B_r of a stack of quantised operands, with `blocks` blocks of K elements along k.

    `a` and `b` are descriptors of the bits of all A_r (m, k) and all B_r (n, k), stacked vertically; the grid has the
    tiles of all C_r, a product after the other. a_scales (products, blocks, m), b_scales (products, groups of K
    columns, b_scale_pitch). Tensor cores accumulate e4m3 with fewer bits than float32: the sum of a block is multiplied
    by its two scales and added in float32. N divides K, so that a tile has one scale of B per block.
    """
    tiles = tl.cdiv(m, M) * tl.cdiv(n, N)
    r = tl.program_id(0) // tiles
    row0, col0 = tile_start(tl.program_id(0) % tiles, m, n, GROUP, M, N)
    i = row0 + tl.arange(0, M)
    slab = r.to(tl.int64)
    of_a = a_scales + slab * blocks * m + i
    of_b = b_scales + (slab * tl.cdiv(n, K) + col0 // K) * b_scale_pitch
    total = tl.zeros((M, N), tl.float32)
    # A tile that extends beyond m or n reads the next matrix of the stack, and that part is not stored.
    # total: the sum over the first `block` blocks of k, each times its two scales; of_a is at this block's scales.
    for block in range(blocks):
        x, y = a.load([r * m + row0, block * K]), b.load([r * n + col0, block * K])  # [M, K], [N, K]
        scale = tl.load(of_a, mask=i < m, other=0.0) * tl.load(of_b + block)  # [M] times one number []
        total += dot_transposed(x, y) * scale[:, None]
        of_a += m
    j = col0 + tl.arange(0, N)
    place = c + slab * c_slab + i.to(tl.int64)[:, None] * c_row + j.to(tl.int64)[None, :] * c_col
    tl.store(place, total.to(c.dtype.element_ty), mask=(i < m)[:, None] & (j < n)[None, :])  # [M, N]

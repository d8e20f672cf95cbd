"""Triton kernels over GF(2): words to elements of one byte and back, and sums of blocks.

Words are int32 here, two per 64-bit word; element (i, j) is bit j % 32 of word j // 32.
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

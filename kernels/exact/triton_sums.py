"""A Triton kernel that sums blocks of words over GF(2).

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl


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

"""A Triton kernel that sums multiples of blocks of integers, stored as int64 or as float64, or blocks of bits.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def sum_blocks(
    source, target, starts, source_rows, source_cols, values, target_rows, target_cols, height, width, rows, cols,
    stride, out_rows, out_cols, out_stride, modulus, XOR: tl.constexpr, REDUCE: tl.constexpr, EACH: tl.constexpr,
    R: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """Set block s of target to the sum of values[p] times block p of source, starts[s] <= p < starts[s + 1].

    Blocks have height x width elements. Block p begins at (source_rows[p], source_cols[p]), block s at (target_rows[s],
    target_cols[s]); elements beyond an edge of source (rows, cols) count as zero, of target (out_rows, out_cols) are
    not written. REDUCE: the sum is reduced modulo n, float64 to the residue of least magnitude as by
    `combine.reduce_row`, int64 to 0 <= c < n; EACH: every multiple is, too. XOR: of words, without values.
    """
    s = tl.program_id(2)
    i = (tl.program_id(1) * R + tl.arange(0, R)).to(tl.int64)
    j = tl.program_id(0) * W + tl.arange(0, W)
    inside = (i < height)[:, None] & (j < width)[None, :]
    kind: tl.constexpr = source.dtype.element_ty
    divisor = tl.full((R, W), 0, tl.int64) + modulus
    total = tl.zeros((R, W), kind)
    # total: the sum over the blocks from starts[s] to p.
    for p in range(tl.load(starts + s), tl.load(starts + s + 1)):  # one number []
        row, col = tl.load(source_rows + p) + i, tl.load(source_cols + p) + j  # one number []
        here = inside & (row < rows)[:, None] & (col < cols)[None, :]
        term = tl.load(source + row[:, None] * stride + col[None, :], here, 0)  # [R, W]
        if XOR:
            total ^= term
        else:
            term *= tl.load(values + p)  # one number []
            if EACH:
                term = residue(term, divisor)
            total += term
    if REDUCE:
        total = residue(total, divisor)
    row, col = tl.load(target_rows + s) + i, tl.load(target_cols + s) + j  # one number []
    here = inside & (row < out_rows)[:, None] & (col < out_cols)[None, :]
    tl.store(target + row[:, None] * out_stride + col[None, :], total, here)  # [R, W]


@triton.jit
def residue(x, modulus):
    """Return x modulo n: int64 in 0 <= c < n; float64 of magnitude at most n / 2 + 2, see `combine.reduce_row`."""
    if x.dtype == tl.int64:
        found = x % modulus
        found = tl.where(found < 0, found + modulus, found)
    else:
        divisor = modulus.to(tl.float64)
        found = x - divisor * tl.floor(x / divisor + 0.5)
    return found

"""The Triton kernel that transposes a matrix of bit patterns.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def gathered_place(feature, inner, D: tl.constexpr):
    """Return the place of the natural features (i, q, j) in the order (i, j, q), for q < inner and j < D."""
    of_blocks = feature.to(tl.int32) // D  # i inner + q
    i = of_blocks // inner
    q = of_blocks - i * inner
    return ((i * D + feature.to(tl.int32) % D) * inner + q).to(tl.int64)


@triton.jit
def transpose_words(
    source, target, rows, cols, source_step, target_step, inner,
    D: tl.constexpr, GATHERS: tl.constexpr, SCATTERS: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
    W: tl.constexpr,
):  # fmt: skip
    """Set target[c, r] = source[r, c] for source (rows, cols) and target (cols, rows), elements of one or two words W.

    Steps are row strides in words. A program reads a tile [R, C] along the rows of the source and
    writes it along those of the target: Triton exchanges it between threads in shared memory. With GATHERS
    features c are written to the rows `gathered_place` of the target, with SCATTERS read from those of the source.
    """
    place = tl.program_id(0)
    across = tl.cdiv(cols, C)
    r = (place // across).to(tl.int64) * R + tl.arange(0, R)
    c = (place % across).to(tl.int64) * C + tl.arange(0, C)
    here = (r < rows)[:, None] & (c < cols)[None, :]
    source_row = gathered_place(r, inner, D) if SCATTERS else r
    target_row = gathered_place(c, inner, D) if GATHERS else c
    if W == 1:
        tile = tl.load(source + source_row[:, None] * source_step + c[None, :], here)  # [R, C]
        tl.store(target + target_row[None, :] * target_step + r[:, None], tile, here)  # [R, C]
    else:
        w, here = tl.arange(0, W)[None, None, :], here[:, :, None]
        tile = tl.load(source + source_row[:, None, None] * source_step + c[None, :, None] * W + w, here)  # [R, C, W]
        # [R, C, W]
        tl.store(target + target_row[None, :, None] * target_step + r[:, None, None] * W + w, tile, here)

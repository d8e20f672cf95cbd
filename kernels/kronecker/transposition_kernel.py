"""The Triton kernel that transposes a matrix of bit patterns.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def transpose_words(
    source, target, rows, cols, source_step, target_step, R: tl.constexpr, C: tl.constexpr, W: tl.constexpr
):
    """Set target[c, r] = source[r, c] for source (rows, cols) and target (cols, rows), elements of one or two words W.

    Steps are row strides in words. A program reads a tile [R, C] along the rows of the source and
    writes it along those of the target: Triton exchanges it between threads in shared memory.
    """
    place = tl.program_id(0)
    across = tl.cdiv(cols, C)
    r = (place // across).to(tl.int64) * R + tl.arange(0, R)
    c = (place % across).to(tl.int64) * C + tl.arange(0, C)
    here = (r < rows)[:, None] & (c < cols)[None, :]
    if W == 1:
        tile = tl.load(source + r[:, None] * source_step + c[None, :], here)
        tl.store(target + c[None, :] * target_step + r[:, None], tile, here)
    else:
        w, here = tl.arange(0, W)[None, None, :], here[:, :, None]
        tile = tl.load(source + r[:, None, None] * source_step + c[None, :, None] * W + w, here)  # [R, C, W]
        tl.store(target + c[None, :, None] * target_step + r[:, None, None] * W + w, tile, here)

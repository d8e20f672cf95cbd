"""The Triton kernel that quantises to e4m3 with block scales; `fp8_naive` is its reference.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..codegen.triton_e4m3 import finite_magnitude, rounded, scaled_down, scales_of


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

"""The Triton kernel that quantises to e4m3 with block scales; `fp8_naive` is its reference.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton import knobs

EMULATED: tl.constexpr = tl.constexpr(bool(knobs.runtime.interpret))
"""Compute e4m3 by integer arithmetic, as Triton's interpreter converts to and from 8 bits wrongly."""

LARGEST: tl.constexpr = tl.constexpr(448.0)
"""The largest finite value of e4m3."""

FLOOR: tl.constexpr = tl.constexpr(2.0**-100)
"""Least magnitude that a scale is computed from."""


@triton.jit
def rounded(values):
    """Round float32 values to e4m3; values beyond 448 are cut to it, and NaN stays."""
    if EMULATED:
        word = values.to(tl.uint32, bitcast=True)
        magnitude = (word & 0x7FFFFFFF).to(tl.int32)
        exponent = magnitude >> 23
        fraction = (magnitude & 0x7FFFFF) | 0x800000
        dropped = tl.minimum(20 + tl.maximum(121 - exponent, 0), 26)
        halves = (tl.full(dropped.shape, 1, tl.int32) << (dropped - 1)) - 1
        kept = (fraction + halves + ((fraction >> dropped) & 1)) >> dropped
        bits = tl.where(exponent >= 121, ((exponent - 121) << 3) + kept, kept)
        bits = tl.where(magnitude > 0x7F800000, 0x7F, tl.minimum(bits, 0x7E))
        bits = bits | ((word >> 24) & 0x80).to(tl.int32)
        return bits.to(tl.uint8).to(tl.float8e4nv, bitcast=True)
    return values.to(tl.float8e4nv)


@triton.jit
def scales_of(largest):
    """Return scales and their inverses; see `fp8_naive.scale_of`. Divisions are rounded to nearest."""
    floored = tl.maximum(largest, FLOOR)
    top = tl.full(largest.shape, LARGEST, tl.float32)
    scale = tl.where(largest == 0, 1.0, tl.div_rn(floored, top))
    return scale, tl.where(largest == 0, 1.0, tl.div_rn(top, floored))


@triton.jit
def quantise(
    x, bits, scales, lines, length, line_step, along_step, pitch, scale_line, scale_along, BLOCKS: tl.constexpr,
    LINES: tl.constexpr, ALONG: tl.constexpr,
):  # fmt: skip
    """Quantise ALONG elements of LINES lines of x (lines, length): rows of A or columns of B.

    bits (lines, pitch) has zeros beyond `length`, and NaN for values that are not finite. Every line has a scale at
    scales[line scale_line + block scale_along]; with BLOCKS all LINES lines of a program share one, and `line` counts
    groups of them.
    """
    line = tl.program_id(0) * LINES + tl.arange(0, LINES)
    along = tl.program_id(1) * ALONG + tl.arange(0, ALONG)
    inside = (line < lines)[:, None] & (along < length)[None, :]
    place = line.to(tl.int64)[:, None] * line_step + along.to(tl.int64)[None, :] * along_step
    values = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)  # [LINES, ALONG]
    magnitude = tl.abs(values)
    finite = magnitude < float("inf")
    largest = tl.max(tl.where(finite, magnitude, 0.0), 1)
    block = tl.program_id(1).to(tl.int64) * scale_along
    if BLOCKS:
        shared = tl.zeros((LINES,), tl.float32) + tl.max(largest, 0)
        scale, inverse = scales_of(shared)
        tl.store(scales + block + tl.program_id(0).to(tl.int64) * scale_line, tl.max(scale, 0))  # one number []
    else:
        scale, inverse = scales_of(largest)
        tl.store(scales + block + line.to(tl.int64) * scale_line, scale, mask=line < lines)  # [LINES]
    found = rounded(tl.where(finite, values * inverse[:, None], float("nan")))
    # [LINES, ALONG]
    tl.store(bits + line.to(tl.int64)[:, None] * pitch + along[None, :], found, mask=(line < lines)[:, None])

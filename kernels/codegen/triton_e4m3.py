"""Quantisation to e4m3 with scales, for Triton kernels written by hand and generated ones.

Imports triton: imported only by kernels. The reference is `cuda.fp8_naive`.
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
def finite_magnitude(values):
    """Return |x| of finite float32 values, 0 for others."""
    magnitude = tl.abs(values)
    return tl.where(magnitude < float("inf"), magnitude, 0.0)


@triton.jit
def scaled_down(values, inverse):
    """Return values times the inverse scales, NaN for values that are not finite."""
    return tl.where(tl.abs(values) < float("inf"), values * inverse, float("nan"))

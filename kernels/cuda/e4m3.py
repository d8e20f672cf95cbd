"""Rounding of float32 to the 8-bit format e4m3 and back, by integer arithmetic in numpy.

e4m3 has a sign, four bits of exponent with the bias 7 and three bits of fraction; no infinities, and one NaN of either
sign. Source: Micikevicius et al., FP8 formats for deep learning (arXiv:2209.05433).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LARGEST = 448.0
"""The largest finite value."""

NAN, LARGEST_BITS = 0x7F, 0x7E
"""The bits of NaN and of LARGEST."""

LEAST_NORMAL = 121
"""Biased exponent in float32 of 2^-6, the least normal value: smaller ones are multiples of 2^-9."""


def bits_of(values: Array) -> Array:
    """Return the bits (uint8) of float32 values rounded to the nearest e4m3 value, ties to even.

    Finite values beyond 448 and infinities become +-448, as in the conversion of NVIDIA's GPUs; NaN stays NaN.
    """
    word = np.ascontiguousarray(values, np.float32).view(np.uint32)
    sign, magnitude = (word >> np.uint32(24)) & np.uint32(0x80), word & np.uint32(0x7FFFFFFF)
    exponent = (magnitude >> np.uint32(23)).astype(np.int64)
    fraction = (magnitude & np.uint32(0x7FFFFF)).astype(np.int64) | 0x800000
    # 21 or more bits of the 24 are dropped: the unit of the result is at least 2^-9. Beyond 26 nothing remains.
    dropped = np.minimum(20 + np.maximum(LEAST_NORMAL - exponent, 0), 26)
    halves = (np.int64(1) << (dropped - 1)) - 1
    kept = (fraction + halves + ((fraction >> dropped) & 1)) >> dropped
    # The leading bit of a normal value adds 1 to the exponent field, and so does a carry of the rounding.
    rounded = np.where(exponent >= LEAST_NORMAL, ((exponent - LEAST_NORMAL) << 3) + kept, kept)
    rounded = np.where(magnitude > np.uint32(0x7F800000), NAN, np.minimum(rounded, LARGEST_BITS))
    found: Array = (rounded.astype(np.uint32) | sign).astype(np.uint8)
    return found


def values_of(bits: Array) -> Array:
    """Return the float32 values of bits (uint8), exactly."""
    bits = np.asarray(bits, np.uint8).astype(np.int64)
    exponent, fraction = (bits >> 3) & 15, bits & 7
    magnitude = np.where(exponent == 0, np.ldexp(fraction, -9), np.ldexp(fraction + 8, exponent - 10))
    magnitude = np.where(bits & 0x7F == NAN, np.nan, magnitude)
    found: Array = np.where(bits & 0x80, -magnitude, magnitude).astype(np.float32)
    return found

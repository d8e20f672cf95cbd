"""The 8-bit floating-point format e4m3fn in numpy, which has none: conversion by integer arithmetic.

One bit of sign, four of exponent with bias 7, three of mantissa; no infinity, NaN is 0x7F. Source: Micikevicius et al.,
"FP8 Formats for Deep Learning" (arXiv:2209.05433), table 1.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LARGEST = 448.0
"""The largest finite value."""

NAN = 0x7F

SMALLEST_NORMAL = 0x3C800000
"""The bits of 2^-6 as float32."""

SUBNORMAL_UNIT = np.float32(16384.0)
"""A float32 whose last place is 2^-9, as that of subnormal codes: to add it rounds to multiples of that."""


def encode(values: Array) -> Array:
    """Return the codes (uint8) of float32 values, rounded to nearest, ties to even; beyond 448 saturated.

    NaN becomes 0x7F.
    """
    bits = np.ascontiguousarray(values, np.float32).view(np.int32)
    magnitude = bits & 0x7FFFFFFF
    # Half of the last place of 20 mantissa bits that are dropped, less one where the last one kept is even.
    normal = ((magnitude + 0x7FFFF + ((magnitude >> 20) & 1)) >> 20) - ((127 - 7) << 3)
    below = np.minimum(magnitude, SMALLEST_NORMAL).view(np.float32)
    subnormal = (below + SUBNORMAL_UNIT).view(np.int32) - SUBNORMAL_UNIT.view(np.int32)
    codes = np.where(magnitude < SMALLEST_NORMAL, subnormal, np.minimum(normal, NAN - 1))
    codes = np.where(magnitude > 0x7F800000, NAN, codes) | ((bits >> 24) & 0x80)
    return codes.astype(np.uint8)


def decode(codes: Array) -> Array:
    """Return the float32 values of codes (uint8)."""
    found: Array = decoded()[codes]
    return found


@cache
def decoded() -> Array:
    """Return the values (256,) of all codes as float32."""
    codes = np.arange(256)
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    values = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10.0))
    values = np.where(codes & 0x7F == NAN, np.nan, values) * np.where(codes & 0x80, -1.0, 1.0)
    return values.astype(np.float32)

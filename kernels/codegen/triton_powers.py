"""Multiplication by powers of two, for Triton kernels written by hand and generated ones.

Imports triton: imported only by kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def times_power(x, shift):
    """Return x * 2^shift for shifts of -252 to 252: by two factors, as 2^shift may not be representable in float32."""
    first = shift >> 1
    x = x * ((first + 127) << 23).to(tl.float32, bitcast=True)
    return x * ((shift - first + 127) << 23).to(tl.float32, bitcast=True)

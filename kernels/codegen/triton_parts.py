"""Parts of Triton kernels, written by hand and generated: the order of tiles, triangles of them, and powers of two.

Imports triton: imported only by kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def tile_start(q, m, n, GROUP: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """Return the first row and column of tile q of C: groups of GROUP rows of tiles share columns of B."""
    down, across = tl.cdiv(m, M), tl.cdiv(n, N)
    top = q // (GROUP * across) * GROUP
    group = tl.minimum(down - top, GROUP)
    return (top + q % (GROUP * across) % group) * M, q % (GROUP * across) // group * N


@triton.jit
def keep_triangle(x, line, along, UPPER: tl.constexpr):
    """Return a tile, zero where `along` is before `line` (UPPER) or after it.

    What is outside may be anything, NaN included: it is replaced, not multiplied.
    """
    return tl.where((along >= line) if UPPER else (along <= line), x, 0.0).to(x.dtype)


@triton.jit
def times_power(x, shift):
    """Return x * 2^shift for shifts of -252 to 252: by two factors, as 2^shift may not be representable in float32."""
    first = shift >> 1
    x = x * ((first + 127) << 23).to(tl.float32, bitcast=True)
    return x * ((shift - first + 127) << 23).to(tl.float32, bitcast=True)

"""Rounding of operands to tf32, which tensor cores truncate.

Imports triton: imported only by kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def rounded(tile, PRECISION: tl.constexpr):
    """Round float32 operands of a tf32 product to the nearest tf32 number; return other operands unchanged.

    Tensor cores truncate the 13 bits that tf32 does not have, and `tl.dot` does not round: on an H200 errors were 2.6
    times those of the vendor's products, which round.
    """
    if PRECISION == "tf32":
        bits = tile.to(tl.int32, bitcast=True)
        tile = ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return tile

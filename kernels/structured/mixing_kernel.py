"""The Triton kernel of BLAST's middle products.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def mix_blocks(
    inner, scales, mixed, n, rank, width,
    B1: tl.constexpr, B2: tl.constexpr, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """Compute mixed[r, k, s] = sum_l scales[r, k, l] inner[r, l, s]; inner (rank, B1, width), mixed (rank, B2, width).

    One program computes N columns s of R independent ranks. K and M are B1 and B2 rounded up
    to powers of two from 16 on.
    """
    s = tl.program_id(0) * N + tl.arange(0, N)
    b1, b2 = tl.arange(0, K), tl.arange(0, M)
    here = s < n
    # The first `step` ranks of this program are stored. They are independent: their loads overlap.
    for step in range(R):
        r = (tl.program_id(1) * R + step).to(tl.int64)
        left = tl.load(
            scales + r * (B1 * B2) + b2[:, None] * B1 + b1[None, :],
            (b2 < B2)[:, None] & (b1 < B1)[None, :] & (r < rank),
            0.0,
        )  # [M, K]
        right = tl.load(
            inner + (r * B1 + b1)[:, None] * width + s[None, :], (b1 < B1)[:, None] & here[None, :] & (r < rank), 0.0
        )  # [K, N]
        total = tl.dot(left, right)
        place = mixed + (r * B2 + b2)[:, None] * width + s[None, :]
        tl.store(place, total.to(mixed.dtype.element_ty), (b2 < B2)[:, None] & here[None, :] & (r < rank))  # [M, N]

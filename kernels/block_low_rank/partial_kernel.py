"""The Triton kernel of BLAST's first two products, with the results of the first in registers.

Imports triton: imported only to launch the kernel. Based on the partial fusion of Abillama et al.,
"Memory-Efficient Acceleration of Block Low-Rank Foundation Models on Resource Constrained GPUs", section 4.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def multiply_and_mix(
    x,
    v,
    scales,
    mixed,
    n,
    rank,
    p,
    x_row,
    x_col,
    width,
    B1: tl.constexpr,
    B2: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    R: tl.constexpr,
    P: tl.constexpr,
):
    """Compute mixed[r, k, s] = sum over l of scales[r, k, l] (sum over j of v[l, r, j] x[l p + j, s]).

    v (B1, rank, p) and scales (rank, B2, B1) are contiguous, mixed is (rank, B2, width); x has any strides. Program
    (s, r) computes N columns and R ranks of all B2 blocks, in float32; M is B2 rounded up to a power of two.
    """
    s = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    r = tl.program_id(1).to(tl.int64) * R + tl.arange(0, R)
    k = tl.arange(0, M)
    here_s, here_r = s < n, r < rank
    total = tl.zeros((M, N, R), tl.float32)
    for block in range(B1):
        product = tl.zeros((N, R), tl.float32)
        for start in range(0, p, P):
            j = start + tl.arange(0, P)
            left = tl.load(
                x + s[:, None] * x_col + (block * p + j).to(tl.int64)[None, :] * x_row,
                here_s[:, None] & (j < p)[None, :],
                0.0,
            )  # [N, P]
            right = tl.load(
                v + (block * rank + r)[None, :] * p + j[:, None], here_r[None, :] & (j < p)[:, None], 0.0
            )  # [P, R]
            product = tl.dot(left, right, product)
        factor = tl.load(
            scales + (r[None, :] * B2 + k[:, None]) * B1 + block, here_r[None, :] & (k < B2)[:, None], 0.0
        ).to(tl.float32)  # [M, R]
        total += factor[:, None, :] * product[None, :, :]
    place = mixed + (r[None, None, :] * B2 + k[:, None, None]) * width + s[None, :, None]
    mask = here_r[None, None, :] & (k < B2)[:, None, None] & here_s[None, :, None]
    tl.store(place, total.to(mixed.dtype.element_ty), mask)

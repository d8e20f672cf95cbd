"""The Triton kernels of Monarch's first products, stored as the second ones read them, and of BLAST's middle products.

Imports triton: imported only to launch the kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def multiply_and_place(
    x, v, z, n, rows, p, programs,
    B1: tl.constexpr, RANK: tl.constexpr, N: tl.constexpr, C: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """Compute z[k, s, l RANK + i] = sum over p of v[l, k RANK + i, p] x[s, l, p]; z is (b2, n, b1 RANK), contiguous.

    x (n, b1, p) and v (b1, rows, p) are tensor descriptors with rows = b2 RANK. A persistent program computes the tiles
    program, program + programs, ...; those that share rows of x are consecutive.
    """
    down, across = tl.cdiv(n, N), tl.cdiv(rows, C)
    # The tiles program, program + programs, ... before t are stored. Flattened, the loads of the next tile begin early.
    for t in tl.range(tl.program_id(0), B1 * down * across, programs, flatten=True):
        c0 = t % across * C
        s0 = t // across % down * N
        i = t // (across * down)
        total = tl.zeros((N, C), tl.float32)
        # total: the sum over the first `start` inputs of block i.
        for start in range(0, p, P):
            left = x.load([s0, i, start]).reshape(N, P)  # [N, 1, P]
            right = v.load([i, c0, start]).reshape(C, P)  # [1, C, P]
            total = tl.dot(left, right.T, total)
        c = c0 + tl.arange(0, C)
        s = s0 + tl.arange(0, N)
        feature = (c // RANK).to(tl.int64) * n * (B1 * RANK) + i * RANK + c % RANK
        place = z + feature[None, :] + s.to(tl.int64)[:, None] * (B1 * RANK)
        tl.store(place, total.to(z.dtype.element_ty), (s < n)[:, None] & (c < rows)[None, :])  # [N, C]


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

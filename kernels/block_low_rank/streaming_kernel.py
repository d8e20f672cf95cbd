"""The Triton kernel of BLAST's first and middle products in one launch, the results between them in the L2.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def wait_for(counter, count):
    """Wait until the counter has reached `count`; then the program sees what was written before it was raised."""
    seen = tl.atomic_add(counter, 0, sem="acquire", scope="gpu")
    while seen < count:
        seen = tl.atomic_add(counter, 0, sem="acquire", scope="gpu")
    tl.debug_barrier()


@triton.jit
def raise_by_one(counter):
    """Raise the counter once for the program, after all that it wrote and read."""
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="release", scope="gpu")


@triton.jit
def multiply_and_mix(
    x,
    v,
    scales,
    inner,
    mixed,
    counters,
    n,
    rank,
    p,
    width,
    slots,
    B1: tl.constexpr,
    B2: tl.constexpr,
    K: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    C: tl.constexpr,
    P: tl.constexpr,
    R: tl.constexpr,
    LAG: tl.constexpr,
):
    """Compute mixed[r, k, s] = sum_l scales[r, k, l] sum_j v[l, r, j] x[s, l, j]; mixed is (rank, B2, width).

    x (n, B1, p) and v (B1, rank, p) are tensor descriptors. Columns s come in chunks of N. The products of a chunk by
    V, tiles of C ranks of one l, go to its slot of `inner`, (slots, rank, B1, N); items of R ranks mix them. K and M
    are B1 and B2 rounded up to powers of two from 16 on.

    Programs take tickets in order. Phase j has the products of chunk j and, evenly between them, the mixtures of chunk
    j - LAG, so that the first are multiplied while the second move. A ticket waits for earlier ones only: mixtures for
    the products of their chunk, products for the mixtures of the chunk that had their slot; slots > LAG. `counters`
    (1 + 2 chunks), zeroed: tickets taken, and by chunk the products and the mixtures that are done.
    """
    chunks = tl.cdiv(n, N)
    products, mixtures = B1 * tl.cdiv(rank, C), tl.cdiv(rank, R)
    each = products + mixtures
    t = tl.atomic_add(counters, 1, sem="relaxed", scope="gpu")
    while t < (chunks + LAG) * each:
        phase, item = t // each, t % each
        mixture = (item * mixtures) // each
        if ((item + 1) * mixtures) // each > mixture:
            chunk = phase - LAG
            if chunk >= 0:
                wait_for(counters + 1 + chunk, products)
                mix_slot(scales, inner, mixed, mixture * R, chunk, chunk % slots, n, rank, width, B1, B2, K, M, N, R)
                raise_by_one(counters + 1 + chunks + chunk)
        elif phase < chunks:
            if phase >= slots:
                wait_for(counters + 1 + chunks + phase - slots, mixtures)
            multiply_tile(x, v, inner, item - mixture, phase, phase % slots, rank, p, B1, N, C, P)
            raise_by_one(counters + 1 + phase)
        t = tl.atomic_add(counters, 1, sem="relaxed", scope="gpu")


@triton.jit
def multiply_tile(
    x, v, inner, tile, chunk, slot, rank, p, B1: tl.constexpr, N: tl.constexpr, C: tl.constexpr, P: tl.constexpr
):
    """Compute one tile (C ranks, N columns) of the first products, into a slot of `inner`."""
    down = tl.cdiv(rank, C)
    i, r0 = tile // down, tile % down * C
    total = tl.zeros((C, N), tl.float32)
    for start in range(0, p, P):
        left = v.load([i, r0, start]).reshape(C, P)
        right = x.load([chunk * N, i, start]).reshape(N, P)
        total = tl.dot(left, right.T, total)
    r, s = r0 + tl.arange(0, C), tl.arange(0, N)
    place = inner + ((slot.to(tl.int64) * rank + r[:, None]) * B1 + i) * N + s[None, :]
    tl.store(place, total.to(inner.dtype.element_ty), r[:, None] < rank)


@triton.jit
def mix_slot(
    scales,
    inner,
    mixed,
    r0,
    chunk,
    slot,
    n,
    rank,
    width,
    B1: tl.constexpr,
    B2: tl.constexpr,
    K: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    R: tl.constexpr,
):
    """Compute the middle products of R ranks and one chunk; reads bypass the L1, which has what a slot held before."""
    # A program has few others on its multiprocessor that hide its loads: of small blocks more are under way.
    STAGES: tl.constexpr = 6 if K == 16 else 3
    b1, b2, c = tl.arange(0, K), tl.arange(0, M), tl.arange(0, N)
    s = chunk * N + c
    for step in tl.range(0, R, num_stages=STAGES):
        r = (r0 + step).to(tl.int64)
        left = tl.load(
            scales + r * (B1 * B2) + b2[:, None] * B1 + b1[None, :],
            (b2 < B2)[:, None] & (b1 < B1)[None, :] & (r < rank),
            0.0,
        )  # [M, K]
        right = tl.load(
            inner + ((slot.to(tl.int64) * rank + r) * B1 + b1[:, None]) * N + c[None, :],
            (b1 < B1)[:, None] & (r < rank),
            0.0,
            cache_modifier=".cg",
        )  # [K, N]
        total = tl.dot(left, right)
        place = mixed + (r * B2 + b2)[:, None] * width + s[None, :]
        tl.store(place, total.to(mixed.dtype.element_ty), (b2 < B2)[:, None] & (s < n)[None, :] & (r < rank))

"""The Triton kernel of products with few columns: one launch, every weight read once, by whole rows.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def wait_for_all(counter, programs):
    """Wait until all programs have arrived; then each sees all that the others wrote before.

    The first program adds 2^31 - programs + 1 to the int32 and each other one 1, which flips the highest bit when the
    last arrives and leaves the other bits unchanged: the counter needs no reset.
    """
    tl.debug_barrier()
    # 2147483647 is the largest int32: the sum over all programs is 2^31 whatever their number.
    step = tl.where(tl.program_id(0) == 0, 2147483647 - (programs - 2), 1)
    old = tl.atomic_add(counter, step, sem="acq_rel", scope="gpu")
    seen = old
    # The highest bit, the sign, is that of this program's arrival until the last one has arrived.
    while (seen ^ old) >= 0:
        seen = tl.atomic_add(counter, 0, sem="acquire", scope="gpu")
    tl.debug_barrier()


@triton.jit
def prefetch_rows(weights, sizes, programs, ROWS: tl.constexpr, AHEAD: tl.constexpr):
    """Prefetch the weights of this program's first AHEAD items of `multiply_rows` into the L2."""
    count, m, k = sizes
    # Elements of a line of the cache: 1024 bits.
    LINE: tl.constexpr = 1024 // weights.dtype.element_ty.primitive_bitwidth
    across = tl.cdiv(m, ROWS)
    # The items program, program + programs, ... before this one are requested, at most AHEAD of them.
    for item in range(tl.program_id(0), tl.minimum(count * across, AHEAD * programs), programs):
        b = (item // across).to(tl.int64)
        start, last = (b * m + item % across * ROWS) * k, (b + 1) * m * k - 1
        # Its first `line` elements are requested, 128 lines of the cache a step; beyond the block its last one.
        for line in range(0, ROWS * k, 128 * LINE):
            place = tl.minimum(start + line + tl.arange(0, 128) * LINE, last)
            tl.inline_asm_elementwise(
                "prefetch.global.L2 [$1]; mov.b32 $0, 0;",
                "=r,l",
                [weights + place],
                dtype=tl.int32,
                is_pure=False,
                pack=1,
            )


@triton.jit
def multiply_rows(
    weights, x, y, sizes, n, x_strides, y_strides, programs,
    GROUP: tl.constexpr, ROWS: tl.constexpr, K: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Compute y[b, i, s] = sum over j of weights[b, i, j] x[b, j, s] for n <= N columns s; sums are float32.

    weights of these sizes (count, m, k) are contiguous; strides of x are those of b, j and s. y has the strides block,
    major, minor and col: row i of b is at b block + i // GROUP major + i % GROUP minor. An item is ROWS rows of a
    block; program t of `programs` computes the items t, t + programs, ...
    """
    count, m, k = sizes
    x_block, x_row, x_col = x_strides
    y_block, y_major, y_minor, y_col = y_strides
    across = tl.cdiv(m, ROWS)
    s = tl.arange(0, N)
    # The items program, program + programs, ... before this one are stored.
    for item in range(tl.program_id(0), count * across, programs):
        b = (item // across).to(tl.int64)
        i = item % across * ROWS + tl.arange(0, ROWS)
        here = i < m
        rows = weights + (b * m + i) * k
        given = x + b * x_block
        total = tl.zeros((ROWS, K if N == 1 else N), tl.float32)
        # total: the sum over j < start; by element of a step if N is 1, as one reduction at the end is cheaper.
        for start in range(0, k, K):
            j = start + tl.arange(0, K)
            left = tl.load(
                rows[:, None] + j[None, :], here[:, None] & (j < k)[None, :], 0.0, eviction_policy="evict_first"
            )  # [ROWS, K]
            if N == 1:
                column = tl.load(given + j * x_row, j < k, 0.0)  # [K]
                total += left.to(tl.float32) * column.to(tl.float32)[None, :]
            else:
                # Columns 0 to c - 1 are added.
                for c in tl.static_range(N):
                    column = tl.load(given + j * x_row + c * x_col, (j < k) & (c < n), 0.0)  # [K]
                    part = tl.sum(left.to(tl.float32) * column.to(tl.float32)[None, :], 1)
                    total += tl.where(s[None, :] == c, part[:, None], 0.0)
        place = y + b * y_block + (i // GROUP).to(tl.int64) * y_major + (i % GROUP).to(tl.int64) * y_minor
        if N == 1:
            tl.store(place, tl.sum(total, 1).to(y.dtype.element_ty), here)  # [ROWS]
        else:
            tl.store(
                place[:, None] + s[None, :] * y_col, total.to(y.dtype.element_ty), here[:, None] & (s < n)[None, :]
            )  # [ROWS, N]


@triton.jit
def mix_ranks(
    v, scales, x, z, rank, p, n, x_strides, programs,
    B1: tl.constexpr, B2: tl.constexpr, L: tl.constexpr, M: tl.constexpr, P: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Compute BLAST's first two products z[k, s, r] = sum_l scales[r, k, l] (sum_j v[l, r, j] x[l p + j, s]).

    v (B1, rank, p), scales (rank, B2, B1) and z (B2, n, rank) are contiguous. An item is a rank with all its blocks: it
    needs no result of another program. L and M are B1 and B2 rounded up to powers of two.
    """
    x_row, x_col = x_strides
    l, k, s = tl.arange(0, L), tl.arange(0, M), tl.arange(0, N)
    # The ranks program, program + programs, ... before r are stored.
    for r in range(tl.program_id(0), rank, programs):
        inner = tl.zeros((L, P if N == 1 else N), tl.float32)
        # inner: the sum over j < start of every block l; by element of a step if N is 1.
        for start in range(0, p, P):
            j = start + tl.arange(0, P)
            here = (l < B1)[:, None] & (j < p)[None, :]
            left = tl.load(
                v + (l.to(tl.int64)[:, None] * rank + r) * p + j[None, :], here, 0.0, eviction_policy="evict_first"
            ).to(tl.float32)  # [L, P]
            given = x + (l[:, None] * p + j[None, :]).to(tl.int64) * x_row
            if N == 1:
                inner += left * tl.load(given, here, 0.0).to(tl.float32)  # [L, P]
            else:
                # Columns 0 to c - 1 are added.
                for c in tl.static_range(N):
                    part = tl.sum(left * tl.load(given + c * x_col, here & (c < n), 0.0).to(tl.float32), 1)  # [L, P]
                    inner += tl.where(s[None, :] == c, part[:, None], 0.0)
        factor = tl.load(
            scales + (k.to(tl.int64)[:, None] + r * B2) * B1 + l[None, :], (k < B2)[:, None] & (l < B1)[None, :], 0.0
        ).to(tl.float32)  # [M, L]
        place = z + k.to(tl.int64) * n * rank + r
        if N == 1:
            mixed = tl.sum(factor * tl.sum(inner, 1)[None, :], 1)
            tl.store(place, mixed.to(z.dtype.element_ty), k < B2)  # [M]
        else:
            mixed = tl.sum(factor[:, :, None] * inner[None, :, :], 1)
            tl.store(
                place[:, None] + s[None, :] * rank, mixed.to(z.dtype.element_ty), (k < B2)[:, None] & (s < n)[None, :]
            )  # [M, N]


@triton.jit
def multiply_few_columns(
    v, scales, u, x, z, y, counter, n, programs, first, x_strides, z_strides, second, y_strides,
    GROUP: tl.constexpr, B1: tl.constexpr, B2: tl.constexpr, L: tl.constexpr, M: tl.constexpr, MIX: tl.constexpr,
    ROWS1: tl.constexpr, K1: tl.constexpr, ROWS2: tl.constexpr, K2: tl.constexpr, N: tl.constexpr,
    AHEAD: tl.constexpr, FIRST: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    """Compute y (n columns) = W x of a low-rank or Monarch matrix, or (MIX) a BLAST one, in two stages.

    `first` and `second` are the sizes (blocks, rows, columns) of the stages' weights v and u; strides are (row, col) of
    x, (block, minor, col) of z as it is written, and (block, row, col) of y. Constants are no tuple: Triton records a
    launch as JSON (see `precompile`), which keeps neither a tuple among the constants nor the names of its fields.

    The stages are separated by a barrier of all programs, all of which must be resident; with FIRST or LAST
    alone only one of them is run, without a barrier. z (blocks, n, columns of u) is the result of the first stage.
    """
    m1, k1, k2 = first[1], first[2], second[2]
    x_row, x_col = x_strides
    z_block, z_minor, z_col = z_strides
    y_block, y_row, y_col = y_strides
    if FIRST:
        if MIX:
            mix_ranks(v, scales, x, z, m1, k1, n, x_strides, programs, B1, B2, L, M, K1, N)
        else:
            multiply_rows(
                *(v, x, z, first, n, (k1 * x_row, x_row, x_col), (z_block, 1, z_minor, z_col), programs),
                *(GROUP, ROWS1, K1, N),
            )
    if FIRST and LAST:
        if AHEAD > 0:
            prefetch_rows(u, second, programs, ROWS2, AHEAD)
        wait_for_all(counter, programs)
    if LAST:
        multiply_rows(*(u, z, y, second, n, (n * k2, 1, k2), (y_block, y_row, 0, y_col), programs), *(1, ROWS2, K2, N))

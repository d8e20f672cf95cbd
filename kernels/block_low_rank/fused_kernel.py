"""The Triton kernel of a whole low-rank product for small ranks, with the intermediate result in registers.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def multiply_low_rank(
    x,
    v,
    u,
    y,
    n,
    cols,
    rows,
    rank,
    part,
    N: tl.constexpr,
    R: tl.constexpr,
    P: tl.constexpr,
    Q: tl.constexpr,
):
    """Compute y (n, rows) = (x v^T) u^T for x (n, cols), v (rank, cols), u (rows, rank), all contiguous, rank <= R.

    Program (i, j) computes N rows of x v^T, rounds them to the dtype of x as two products would, and multiplies them
    by `part` rows of u from j part on: x v^T is computed once for every j.
    """
    s = tl.program_id(0) * N + tl.arange(0, N)
    i = tl.arange(0, R)
    here_s, here_r = s < n, i < rank
    wide = s.to(tl.int64)[:, None]
    inner = tl.zeros((N, R), tl.float32)
    for start in range(0, cols, P):
        c = start + tl.arange(0, P)
        left = tl.load(x + wide * cols + c[None, :], here_s[:, None] & (c < cols)[None, :], 0.0)
        right = tl.load(v + i.to(tl.int64)[:, None] * cols + c[None, :], here_r[:, None] & (c < cols)[None, :], 0.0)
        inner = tl.dot(left, right.T, inner)
    hidden = inner.to(x.dtype.element_ty)
    first = tl.program_id(1) * part
    for start in range(first, tl.minimum(first + part, rows), Q):
        o = start + tl.arange(0, Q)
        weights = tl.load(u + o.to(tl.int64)[:, None] * rank + i[None, :], (o < rows)[:, None] & here_r[None, :], 0.0)
        total = tl.dot(hidden, weights.T)
        here_o = (o < rows) & (o < first + part)
        tl.store(y + wide * rows + o[None, :], total.to(y.dtype.element_ty), here_s[:, None] & here_o[None, :])

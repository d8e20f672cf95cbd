"""The Triton kernel of one Kronecker-sparse factor: tiles over the batch, a block row, and several of the d diagonals.

Imports triton: only what launches the kernel imports this.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def multiply_factor(
    x,
    weights,
    y,
    n,
    b,
    c,
    d,
    x_feature,
    x_batch,
    y_feature,
    y_batch,
    PRECISION: tl.constexpr,
    DOUBLE: tl.constexpr,
    N: tl.constexpr,
    P: tl.constexpr,
    Q: tl.constexpr,
    J: tl.constexpr,
):
    """y[i, p, j, s] = sum over q of weights[i, j, p, q] x[i, q, j, s], for N columns s, P of p and J of j.

    Output-stationary: one program writes its part of y once. Neighbouring j lie side by side where the batch is
    first, so that a program that takes J of them reads whole sectors of memory.
    """
    place = tl.program_id(0)
    i = tl.program_id(1).to(tl.int64)
    tiles = tl.cdiv(b, P)
    s = ((place // tiles) * N + tl.arange(0, N)).to(tl.int64)
    p = (place % tiles) * P + tl.arange(0, P)
    j = tl.program_id(2) * J + tl.arange(0, J)
    here_s, here_p, here_j = s < n, p < b, j < d
    x_place = x + (i * c * d + j)[:, None, None] * x_feature + s[None, :, None] * x_batch  # [J, N, 1]
    w_place = weights + ((i * d + j)[:, None, None] * b + p[None, None, :]) * c  # [J, 1, P]
    if DOUBLE:  # noqa: SIM108  # Triton types both branches of an expression
        total = tl.zeros((J, N, P), tl.float64)
    else:
        total = tl.zeros((J, N, P), tl.float32)
    for start in range(0, c, Q):
        q = start + tl.arange(0, Q)
        here_q = q < c
        inputs = here_j[:, None, None] & here_s[None, :, None] & here_q[None, None, :]
        left = tl.load(x_place + (q.to(tl.int64) * d)[None, None, :] * x_feature, inputs, 0.0)  # [J, N, Q]
        blocks = here_j[:, None, None] & here_q[None, :, None] & here_p[None, None, :]
        right = tl.load(w_place + q[None, :, None], blocks, 0.0)  # [J, Q, P]
        total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=total.dtype)
    outputs = here_j[:, None, None] & here_s[None, :, None] & here_p[None, None, :]
    feature = (i * b + p)[None, None, :] * d + j[:, None, None]
    tl.store(y + feature * y_feature + s[None, :, None] * y_batch, total.to(y.dtype.element_ty), outputs)

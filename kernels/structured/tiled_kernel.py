"""The Triton kernel of one Kronecker-sparse factor: tiles over the batch and the rows of one block.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .rounding_kernel import rounded


@triton.jit
def multiply_factor(
    x,
    weights,
    y,
    n,
    b,
    c,
    x_feature,
    x_batch,
    y_feature,
    y_batch,
    D: tl.constexpr,
    PRECISION: tl.constexpr,
    DOUBLE: tl.constexpr,
    N: tl.constexpr,
    P: tl.constexpr,
    Q: tl.constexpr,
    J: tl.constexpr,
):
    """Compute y[i, p, j, s] = sum over q of weights[i, j, p, q] x[i, q, j, s], for N columns s, P of p, one j: J = 1.

    Output-stationary: one program writes its part of y once; programs that read the same columns s are
    consecutive. D is a constant, so that the compiler knows which addresses are aligned.
    """
    place = tl.program_id(0)
    tiles, slabs = tl.cdiv(b, P), tl.cdiv(n, N)
    p = (place % tiles) * P + tl.arange(0, P)
    j = (place // tiles) % D
    place = place // (tiles * D)
    s = ((place % slabs) * N).to(tl.int64) + tl.arange(0, N)
    i = (place // slabs).to(tl.int64)
    here_s, here_p = s < n, p < b
    x_place = x + (i * c * D + j) * x_feature + s[:, None] * x_batch  # [N, 1]
    w_place = weights + ((i * D + j) * b + p[None, :]) * c  # [1, P]
    if DOUBLE:  # noqa: SIM108  # Triton types both branches of an expression
        total = tl.zeros((N, P), tl.float64)
    else:
        total = tl.zeros((N, P), tl.float32)
    for start in range(0, c, Q):
        q = start + tl.arange(0, Q)
        here_q = q < c
        left = tl.load(
            x_place + (q.to(tl.int64) * D)[None, :] * x_feature, here_s[:, None] & here_q[None, :], 0.0
        )  # [N, Q]
        right = tl.load(w_place + q[:, None], here_q[:, None] & here_p[None, :], 0.0)  # [Q, P]
        total = tl.dot(
            rounded(left, PRECISION), rounded(right, PRECISION), total, input_precision=PRECISION, out_dtype=total.dtype
        )
    feature = (i * b + p)[None, :] * D + j
    outputs = here_s[:, None] & here_p[None, :]
    tl.store(y + feature * y_feature + s[:, None] * y_batch, total.to(y.dtype.element_ty), outputs)  # [N, P]

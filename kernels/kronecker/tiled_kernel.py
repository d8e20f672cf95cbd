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
    """y[i, p, j, s] = sum over q of weights[i, j, p, q] x[i, q, j, s], for N columns s, P of p and J of j.

    Output-stationary: one program writes its part of y once. Neighbouring j lie side by side where the batch is
    first, so that a program that takes J of them reads whole sectors of memory; programs that read the same columns
    s, or the other diagonals of the same sectors, follow each other. D is a constant, so that the compiler knows
    which addresses are aligned.
    """
    place = tl.program_id(0)
    tiles, groups, slabs = tl.cdiv(b, P), tl.cdiv(D, J), tl.cdiv(n, N)
    p = (place % tiles) * P + tl.arange(0, P)
    first_j = (place // tiles) % groups * J
    place = place // (tiles * groups)
    s = ((place % slabs) * N).to(tl.int64) + tl.arange(0, N)
    i = (place // slabs).to(tl.int64)
    here_s, here_p = s < n, p < b
    if J == 1:
        x_place = x + (i * c * D + first_j) * x_feature + s[:, None] * x_batch  # [N, 1]
        w_place = weights + ((i * D + first_j) * b + p[None, :]) * c  # [1, P]
        if DOUBLE:  # noqa: SIM108  # Triton types both branches of an expression
            flat = tl.zeros((N, P), tl.float64)
        else:
            flat = tl.zeros((N, P), tl.float32)
        for start in range(0, c, Q):
            q = start + tl.arange(0, Q)
            here_q = q < c
            left = tl.load(
                x_place + (q.to(tl.int64) * D)[None, :] * x_feature, here_s[:, None] & here_q[None, :], 0.0
            )  # [N, Q]
            right = tl.load(w_place + q[:, None], here_q[:, None] & here_p[None, :], 0.0)  # [Q, P]
            flat = tl.dot(left, right, flat, input_precision=PRECISION, out_dtype=flat.dtype)
        feature = (i * b + p)[None, :] * D + first_j
        outputs = here_s[:, None] & here_p[None, :]
        tl.store(y + feature * y_feature + s[:, None] * y_batch, flat.to(y.dtype.element_ty), outputs)
    else:
        j = first_j + tl.arange(0, J)
        here_j = j < D
        x_place = x + (i * c * D + j)[:, None, None] * x_feature + s[None, :, None] * x_batch  # [J, N, 1]
        w_place = weights + ((i * D + j)[:, None, None] * b + p[None, None, :]) * c  # [J, 1, P]
        if DOUBLE:  # noqa: SIM108
            total = tl.zeros((J, N, P), tl.float64)
        else:
            total = tl.zeros((J, N, P), tl.float32)
        for start in range(0, c, Q):
            q = start + tl.arange(0, Q)
            here_q = q < c
            inputs = here_s[None, :, None] & here_q[None, None, :]
            blocks = here_q[None, :, None] & here_p[None, None, :]
            if D % J != 0:
                inputs = inputs & here_j[:, None, None]
                blocks = blocks & here_j[:, None, None]
            left = tl.load(x_place + (q.to(tl.int64) * D)[None, None, :] * x_feature, inputs, 0.0)  # [J, N, Q]
            right = tl.load(w_place + q[None, :, None], blocks, 0.0)  # [J, Q, P]
            total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=total.dtype)
        outputs = here_s[None, :, None] & here_p[None, None, :]
        if D % J != 0:
            outputs = outputs & here_j[:, None, None]
        feature = (i * b + p)[None, None, :] * D + j[:, None, None]
        tl.store(y + feature * y_feature + s[None, :, None] * y_batch, total.to(y.dtype.element_ty), outputs)

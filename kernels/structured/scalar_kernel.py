"""The Triton kernel of a factor with small blocks, real or complex, without tensor cores.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def gather_factor(
    x, weights, y, n, b, c, x_feature, x_batch, y_feature, y_batch,
    D: tl.constexpr, DOUBLE: tl.constexpr, PARTS: tl.constexpr, N: tl.constexpr, P: tl.constexpr, J: tl.constexpr,
):  # fmt: skip
    """Compute y[i, p, j, s] = sum over q of weights[i, j, p, q] x[i, q, j, s], P rows p, J diagonals j, N columns s.

    Output-stationary: a program gathers every x[i, q, j, s] that it needs once, for all its rows, and writes its part
    of y once. Only p, j and s are padded. With PARTS = 2 elements are pairs (real, imaginary), and strides count
    real numbers.
    """
    place = tl.program_id(0)
    tiles, groups, slabs = tl.cdiv(b, P), tl.cdiv(D, J), tl.cdiv(n, N)
    p = (place % tiles) * P + tl.arange(0, P)
    place = place // tiles
    j = (place % groups) * J + tl.arange(0, J)
    place = place // groups
    s = ((place % slabs) * N).to(tl.int64) + tl.arange(0, N)
    i = (place // slabs).to(tl.int64)
    here_p, here_j, here_s = p < b, j < D, s < n
    inputs = here_j[None, :, None] & here_s[None, None, :]
    blocks = here_p[:, None, None] & here_j[None, :, None]
    x_place = x + (i * c * D + j)[None, :, None] * x_feature + s[None, None, :] * x_batch  # [1, J, N]
    w_place = weights + (((i * D + j)[None, :, None] * b + p[:, None, None]) * c) * PARTS  # [P, J, 1]
    if DOUBLE:  # noqa: SIM108  # Triton types both branches of an expression
        total = tl.zeros((P, J, N), tl.float64)
    else:
        total = tl.zeros((P, J, N), tl.float32)
    imaginary = total
    # total (and imaginary): the sum over the first q columns of the blocks.
    for q in range(c):
        step = tl.cast(q, tl.int64) * D * x_feature
        left = tl.load(x_place + step, inputs, 0.0).to(total.dtype)  # [1, J, N]
        right = tl.load(w_place + q * PARTS, blocks, 0.0).to(total.dtype)  # [P, J, 1]
        total += right * left
        if PARTS == 2:
            left_i = tl.load(x_place + step + 1, inputs, 0.0).to(total.dtype)  # [1, J, N]
            right_i = tl.load(w_place + q * PARTS + 1, blocks, 0.0).to(total.dtype)  # [P, J, 1]
            total -= right_i * left_i
            imaginary += right * left_i + right_i * left
    feature = (i * b + p)[:, None, None] * D + j[None, :, None]
    target = y + feature * y_feature + s[None, None, :] * y_batch  # [P, J, N]
    outputs = here_p[:, None, None] & inputs
    tl.store(target, total.to(y.dtype.element_ty), outputs)  # [P, J, N]
    if PARTS == 2:
        tl.store(target + 1, imaginary.to(y.dtype.element_ty), outputs)  # [P, J, N]

"""The Triton kernels of small blocks without tensor cores, real or complex: of one factor, and of two neighbours.

Imports triton: imported only to launch the kernels.
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


@triton.jit
def multiply_pair(
    x, first, second, y, n, b1, c1, b2, c2, x_feature, x_batch, y_feature, y_batch,
    D: tl.constexpr, DOUBLE: tl.constexpr, PARTS: tl.constexpr, N: tl.constexpr, Q: tl.constexpr, P: tl.constexpr,
    J: tl.constexpr,
):  # fmt: skip
    """Compute y = K1 K2 x for K1 (a, b1, c1, b2 D) by `first` and K2 (a c1, b2, c2, D) by `second`.

    h[q, p, j, s] = sum over k of second[(i, q), j, p, k] x[i, q, k, j, s]
    y[i, r, (p, j), s] = sum over q of first[i, (p, j), r, q] h[q, p, j, s]

    A program computes the h of one i, J diagonals j and N columns s, for all q < c1 <= Q and p < b2 <= P, and from
    these alone its part of y. With PARTS = 2 elements are pairs (real, imaginary), and strides count real numbers.
    """
    place = tl.program_id(0)
    groups, slabs = tl.cdiv(D, J), tl.cdiv(n, N)
    j = (place % groups) * J + tl.arange(0, J)[None, None, :, None]
    place = place // groups
    s = ((place % slabs) * N).to(tl.int64) + tl.arange(0, N)[None, None, None, :]
    i = (place // slabs).to(tl.int64)
    q, p = tl.arange(0, Q)[:, None, None, None], tl.arange(0, P)[None, :, None, None]
    here_q, here_p, here = q < c1, p < b2, (j < D) & (s < n)
    x_place = x + ((i * c1 + q) * c2 * D + j) * x_feature + s * x_batch  # [Q, 1, J, N]
    second_place = second + (((i * c1 + q) * D + j) * b2 + p) * c2 * PARTS  # [Q, P, J, 1]
    if DOUBLE:  # noqa: SIM108  # Triton types both branches of an expression
        h = tl.zeros((Q, P, J, N), tl.float64)
    else:
        h = tl.zeros((Q, P, J, N), tl.float32)
    h_i = h
    weights = here_q & here_p & (j < D)
    # h (and h_i): the sum over the first k columns of the blocks of K2.
    for k in range(c2):
        step = tl.cast(k, tl.int64) * D * x_feature
        left = tl.load(x_place + step, here_q & here, 0.0).to(h.dtype)  # [Q, 1, J, N]
        right = tl.load(second_place + k * PARTS, weights, 0.0).to(h.dtype)  # [Q, P, J, 1]
        h += right * left
        if PARTS == 2:
            left_i = tl.load(x_place + step + 1, here_q & here, 0.0).to(h.dtype)  # [Q, 1, J, N]
            right_i = tl.load(second_place + k * PARTS + 1, weights, 0.0).to(h.dtype)  # [Q, P, J, 1]
            h -= right_i * left_i
            h_i += right * left_i + right_i * left
    diagonal = p * D + j  # of K1, [1, P, J, 1]
    first_place = first + ((i * b2 * D + diagonal) * b1 * c1 + q) * PARTS  # [Q, P, J, 1]
    y_place = y + (i * b1 * b2 * D + diagonal) * y_feature + s * y_batch  # [1, P, J, N]
    outputs = here_p & here
    # Rows 0 to r - 1 of the blocks of K1 are stored.
    for r in range(b1):
        target = y_place + tl.cast(r, tl.int64) * b2 * D * y_feature
        right = tl.load(first_place + r * c1 * PARTS, weights, 0.0).to(h.dtype)  # [Q, P, J, 1]
        total = right * h
        if PARTS == 2:
            right_i = tl.load(first_place + r * c1 * PARTS + 1, weights, 0.0).to(h.dtype)  # [Q, P, J, 1]
            total -= right_i * h_i
            imaginary = tl.sum(right * h_i + right_i * h, axis=0, keep_dims=True)
            tl.store(target + 1, imaginary.to(y.dtype.element_ty), outputs)  # [1, P, J, N]
        tl.store(target, tl.sum(total, axis=0, keep_dims=True).to(y.dtype.element_ty), outputs)  # [1, P, J, N]

"""The Triton kernels of one factor: by tiles, by gathered small blocks, and of the middle one of BLAST.

Imports triton: imported only to launch the kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def rounded(tile, PRECISION: tl.constexpr):
    """Round float32 operands of a tf32 product to the nearest tf32 number; return other operands unchanged.

    Tensor cores truncate the 13 bits that tf32 does not have, and `tl.dot` does not round: on an H200 errors were 2.6
    times those of the vendor's products, which round.
    """
    if PRECISION == "tf32":
        # Half of the unit of the 13 bits that are cut (0x1000) is added, then they are cleared (-0x2000).
        bits = tile.to(tl.int32, bitcast=True)
        tile = ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return tile


@triton.jit
def multiply_factor(
    x, weights, y, n, b, c, x_feature, x_batch, y_feature, y_batch,
    D: tl.constexpr, PRECISION: tl.constexpr, DOUBLE: tl.constexpr, N: tl.constexpr, P: tl.constexpr,
    Q: tl.constexpr, J: tl.constexpr,
):  # fmt: skip
    """Compute y[i, p, j, s] = sum over q of weights[i, j, p, q] x[i, q, j, s], for N columns s, P of p, J of j.

    Output-stationary: one program writes its part of y once; programs that read the same columns s are
    consecutive. D is a constant, so that the compiler knows which addresses are aligned.

    J is 1, 2 or 4. With J > 1 a tile [N, Q, J] of x is contiguous in (q, j) if it is batch-first and J = d; it is
    split in registers into J matrices [N, Q], each multiplied by its own block, and the results are joined again: J
    plain products, and no sector of memory is read for one diagonal alone.
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
    else:
        j = first_j + tl.arange(0, J)
        here_j = j < D
        x_place = x + (i * c * D + j)[None, None, :] * x_feature + s[:, None, None] * x_batch  # [N, 1, J]
    w_place = weights + ((i * D + first_j) * b + p[None, :]) * c  # [1, P]
    step = tl.cast(b, tl.int64) * c  # from the block of one diagonal to the next
    if DOUBLE:  # noqa: SIM108  # Triton types both branches of an expression
        total0 = tl.zeros((N, P), tl.float64)
    else:
        total0 = tl.zeros((N, P), tl.float32)
    total1, total2, total3 = total0, total0, total0
    # total0 to total3: by diagonal, the sums over the first `start` columns of the blocks.
    for start in range(0, c, Q):
        q = start + tl.arange(0, Q)
        here_q = q < c
        if J == 1:
            inputs = here_s[:, None] & here_q[None, :]
            tile = tl.load(x_place + (q.to(tl.int64) * D)[None, :] * x_feature, inputs, 0.0)  # [N, Q]
        else:
            inputs = here_s[:, None, None] & here_q[None, :, None]
            if D % J != 0:
                inputs = inputs & here_j[None, None, :]
            tile = tl.load(x_place + (q.to(tl.int64) * D)[None, :, None] * x_feature, inputs, 0.0)  # [N, Q, J]
        tile = rounded(tile, PRECISION)
        block, here = w_place + q[:, None], here_q[:, None] & here_p[None, :]  # [Q, P]
        if J == 1:
            left0 = tile
        elif J == 2:
            left0, left1 = tl.split(tile)
        else:
            even, odd = tl.split(tl.reshape(tile, (N, Q, 2, 2)))
            left0, left2 = tl.split(even)
            left1, left3 = tl.split(odd)
        right = rounded(tl.load(block, here, 0.0), PRECISION)  # [Q, P]
        total0 = tl.dot(left0, right, total0, input_precision=PRECISION, out_dtype=total0.dtype)
        if J > 1:
            right = rounded(tl.load(block + step, here & (first_j + 1 < D), 0.0), PRECISION)  # [Q, P]
            total1 = tl.dot(left1, right, total1, input_precision=PRECISION, out_dtype=total0.dtype)
        if J == 4:
            right = rounded(tl.load(block + 2 * step, here & (first_j + 2 < D), 0.0), PRECISION)  # [Q, P]
            total2 = tl.dot(left2, right, total2, input_precision=PRECISION, out_dtype=total0.dtype)
            right = rounded(tl.load(block + 3 * step, here & (first_j + 3 < D), 0.0), PRECISION)  # [Q, P]
            total3 = tl.dot(left3, right, total3, input_precision=PRECISION, out_dtype=total0.dtype)
    if J == 1:
        target = y + ((i * b + p)[None, :] * D + first_j) * y_feature + s[:, None] * y_batch  # [N, P]
        tl.store(target, total0.to(y.dtype.element_ty), here_s[:, None] & here_p[None, :])  # [N, P]
    else:
        outputs = here_s[:, None, None] & here_p[None, :, None]
        if D % J != 0:
            outputs = outputs & here_j[None, None, :]
        feature = (i * b + p)[None, :, None] * D + j[None, None, :]
        target = y + feature * y_feature + s[:, None, None] * y_batch  # [N, P, J]
        if J == 2:
            tl.store(target, tl.join(total0, total1).to(y.dtype.element_ty), outputs)  # [N, P, 2]
        else:
            pairs = tl.join(tl.join(total0, total2), tl.join(total1, total3))
            tl.store(target, tl.reshape(pairs, (N, P, 4)).to(y.dtype.element_ty), outputs)  # [N, P, 4]


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

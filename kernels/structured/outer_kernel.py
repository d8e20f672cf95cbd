"""The Triton kernel of the gradient of a factor's parameters: sums of outer products over parts of the batch.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .tiled_kernel import rounded


@triton.jit
def sum_outer(
    grad, x, sums, n, part, a, b, c, grad_feature, grad_batch, x_feature, x_batch,
    D: tl.constexpr, PRECISION: tl.constexpr, DOUBLE: tl.constexpr, N: tl.constexpr, P: tl.constexpr,
    Q: tl.constexpr, J: tl.constexpr,
):  # fmt: skip
    """Compute sums[r, i, j, p, q] = sum over s of part r of grad[i, p, j, s] x[i, q, j, s], for P of p, Q of q, J of j.

    Columns s of a part are added N at a time in order. J is 2 or 4: tiles of neighbouring diagonals are
    loaded together and split in registers, as in `multiply_neighbours`.
    """
    place = tl.program_id(0)
    tiles_p, tiles_q, groups = tl.cdiv(b, P), tl.cdiv(c, Q), tl.cdiv(D, J)
    p = (place % tiles_p) * P + tl.arange(0, P)
    place = place // tiles_p
    q = (place % tiles_q) * Q + tl.arange(0, Q)
    place = place // tiles_q
    first_j = place % groups * J
    place = place // groups
    i = (place % a).to(tl.int64)
    r = (place // a).to(tl.int64)
    j = first_j + tl.arange(0, J)
    here_p, here_q, here_j = p < b, q < c, j < D
    g_place = grad + ((i * b + p)[None, :, None] * D + j[None, None, :]) * grad_feature  # [1, P, J]
    x_place = x + ((i * c + q)[None, :, None] * D + j[None, None, :]) * x_feature  # [1, Q, J]
    g_mask, x_mask = here_p[None, :, None] & here_j[None, None, :], here_q[None, :, None] & here_j[None, None, :]
    if DOUBLE:  # noqa: SIM108  # Triton types both branches of an expression
        total0 = tl.zeros((P, Q), tl.float64)
    else:
        total0 = tl.zeros((P, Q), tl.float32)
    total1, total2, total3 = total0, total0, total0
    # total0 to total3: by diagonal, the sums over the first `start` columns of this part of the batch.
    for start in range(0, part, N):
        inner = start + tl.arange(0, N)
        s = r * part + inner
        here_s = ((inner < part) & (s < n))[:, None, None]
        left = tl.load(g_place + s[:, None, None] * grad_batch, here_s & g_mask, 0.0)  # [N, P, J]
        right = tl.load(x_place + s[:, None, None] * x_batch, here_s & x_mask, 0.0)  # [N, Q, J]
        left, right = rounded(left, PRECISION), rounded(right, PRECISION)
        if J == 2:
            left0, left1 = tl.split(left)
            right0, right1 = tl.split(right)
        else:
            left_even, left_odd = tl.split(tl.reshape(left, (N, P, 2, 2)))
            right_even, right_odd = tl.split(tl.reshape(right, (N, Q, 2, 2)))
            left0, left2 = tl.split(left_even)
            left1, left3 = tl.split(left_odd)
            right0, right2 = tl.split(right_even)
            right1, right3 = tl.split(right_odd)
        total0 = tl.dot(tl.trans(left0), right0, total0, input_precision=PRECISION, out_dtype=total0.dtype)
        total1 = tl.dot(tl.trans(left1), right1, total1, input_precision=PRECISION, out_dtype=total0.dtype)
        if J == 4:
            total2 = tl.dot(tl.trans(left2), right2, total2, input_precision=PRECISION, out_dtype=total0.dtype)
            total3 = tl.dot(tl.trans(left3), right3, total3, input_precision=PRECISION, out_dtype=total0.dtype)
    block = tl.cast(b, tl.int64) * c  # elements from the block of one diagonal to the next
    target = sums + ((r * a + i) * D + first_j) * block + p[:, None] * c + q[None, :]
    here = here_p[:, None] & here_q[None, :]
    tl.store(target, total0, here)  # [P, Q]
    tl.store(target + block, total1, here & (first_j + 1 < D))  # [P, Q]
    if J == 4:
        tl.store(target + 2 * block, total2, here & (first_j + 2 < D))  # [P, Q]
        tl.store(target + 3 * block, total3, here & (first_j + 3 < D))  # [P, Q]

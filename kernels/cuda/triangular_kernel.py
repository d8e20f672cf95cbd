"""The Triton kernel of triangular products: tiles and steps without work are skipped.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..codegen.triton_parts import keep_triangle


@triton.jit
def triangular_gemm(
    a, b, c, tiles, m, k, n, a_item, a_row, a_col, b_item, b_row, b_col, c_item, c_row, c_col, heads: tl.constexpr,
    SIDE: tl.constexpr, UPPER: tl.constexpr, EXACT: tl.constexpr, PRECISION: tl.constexpr,
    DOUBLE: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Compute one tile of M x N of C = A B. Program (t, item): `tiles` are the (row, column) of all computed tiles.

    `heads` matrices of C share one of B (GQA); the item strides of A and C count in matrices of C.
    SIDE is an index in `tiles.SIDES`. EXACT: the sizes are multiples of the tile's.
    """
    place = tl.program_id(0)
    item = tl.program_id(1).to(tl.int64)
    i = tl.load(tiles + 2 * place)  # one number []
    j = tl.load(tiles + 2 * place + 1)  # one number []
    row0, col0 = i * M, j * N
    rows = (row0 + tl.arange(0, M)).to(tl.int64)
    cols = (col0 + tl.arange(0, N)).to(tl.int64)
    # A step begins at a multiple of K: with EXACT it has no mask, so that it must not pass the end of k.
    first, last = 0, k
    if SIDE == 2:  # a row of a lower A ends at its diagonal, one of an upper A begins there
        if UPPER:
            first = row0 // K * K
        else:
            last = tl.minimum(row0 + M, k)
    if SIDE == 3:
        if UPPER:
            last = tl.minimum(col0 + N, k)
        else:
            first = col0 // K * K
    a_place = a + item * a_item + rows[:, None] * a_row
    b_place = b + (item // heads) * b_item + cols[None, :] * b_col
    if DOUBLE:  # noqa: SIM108  # Triton types both branches of an expression
        total = tl.zeros((M, N), tl.float64)
    else:
        total = tl.zeros((M, N), tl.float32)
    # total: the sum over the elements of k from first to start, of what is inside the triangle.
    for start in tl.range(first, last, K):
        inner = (start + tl.arange(0, K)).to(tl.int64)
        if EXACT:
            x = tl.load(a_place + inner[None, :] * a_col)  # [M, K]
            y = tl.load(b_place + inner[:, None] * b_row)  # [K, N]
        else:
            x = tl.load(a_place + inner[None, :] * a_col, (rows[:, None] < m) & (inner[None, :] < k), 0.0)  # [M, K]
            y = tl.load(b_place + inner[:, None] * b_row, (inner[:, None] < k) & (cols[None, :] < n), 0.0)  # [K, N]
        if SIDE == 2:
            x = keep_triangle(x, rows[:, None], inner[None, :], UPPER)
        if SIDE == 3:
            y = keep_triangle(y, cols[None, :], inner[:, None], UPPER == 0)
        total = tl.dot(x, y, total, input_precision=PRECISION, out_dtype=total.dtype)
    if SIDE == 1:
        total = keep_triangle(total, rows[:, None], cols[None, :], UPPER)
    where = c + item * c_item + rows[:, None] * c_row + cols[None, :] * c_col
    result = total.to(c.dtype.element_ty)
    if EXACT:
        tl.store(where, result)  # [M, N]
    else:
        tl.store(where, result, (rows[:, None] < m) & (cols[None, :] < n))  # [M, N]

"""The Triton kernel of a stack of products: persistent programs, tiles by the tensor memory accelerator.

Imports triton: imported only to launch the kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..codegen.triton_parts import keep_triangle, tile_start


@triton.jit
def _tile(x, row, col, TRANSPOSED: tl.constexpr):
    if TRANSPOSED:  # noqa: SIM108  # Triton types both branches of an expression
        found = x.load([col, row]).T  # [K, M] or [N, K] transposed
    else:
        found = x.load([row, col])  # [M, K] or [K, N]
    return found


@triton.jit
def stack_gemm(
    a, b, c, tiles, count, places, m, k, n, heads, programs, SIDE: tl.constexpr, UPPER: tl.constexpr,
    A_T: tl.constexpr, B_T: tl.constexpr, GROUP: tl.constexpr, FLAT: tl.constexpr, M: tl.constexpr,
    N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Compute C_r = A_r B_(r // heads) for `count` products; program p computes the tiles p, p + programs, ...

    `a`, `b` and `c` are descriptors of all matrices stacked vertically, of A and B their
    transposes with A_T and B_T. SIDE is an index in `tiles.SIDES`. A product has `places` tiles: in groups
    of GROUP rows (SIDE 0), or in the order of the (row, column) pairs of `tiles`. Elements outside a
    triangle are replaced, not multiplied, so that they may be anything.
    """
    # The tiles program, program + programs, ... before t are stored. Flattened, the loads of the next tile begin early.
    for t in tl.range(tl.program_id(0), count * places, programs, flatten=FLAT):
        r, q = t // places, t % places
        if SIDE == 0:
            row0, col0 = tile_start(q, m, n, GROUP, M, N)
        else:
            row0 = tl.load(tiles + 2 * q) * M  # one number []
            col0 = tl.load(tiles + 2 * q + 1) * N  # one number []
        # Vertically stacked transposes are m columns of k rows, and n rows of k columns.
        a_row, a_inner = (row0, r * k) if A_T else (r * m + row0, 0)
        b_col, b_inner = (r // heads * n + col0, 0) if B_T else (col0, r // heads * k)
        total = tl.zeros((M, N), tl.float32)
        if SIDE < 2:
            last = k
            if SIDE == 1:
                # For a tile outside the triangle one step suffices: it is replaced by zeros.
                last = tl.where((col0 + N > row0) if UPPER else (col0 < row0 + M), k, K)
            # total: the sum over the first `inner` elements of k.
            for inner in range(0, last, K):
                x = _tile(a, a_row, a_inner + inner, A_T)
                y = _tile(b, b_inner + inner, b_col, B_T)
                total = tl.dot(x, y, total)
        else:
            # First the steps inside the triangle, then those that cross the diagonal.
            if SIDE == 2:
                near, past = row0, tl.minimum(row0 + M, k)
            else:
                near, past = col0, tl.minimum(col0 + N, k)
            near = tl.minimum(near, k)
            if (SIDE == 2) == UPPER:
                first, last = past, k
            else:
                first, last = 0, near
            # total: the sum over the elements of k from first to inner, all inside the triangle: no mask.
            for inner in range(first, last, K):
                x = _tile(a, a_row, a_inner + inner, A_T)
                y = _tile(b, b_inner + inner, b_col, B_T)
                total = tl.dot(x, y, total)
            # total: that, and the sum from near to inner of what is inside the triangle.
            for inner in range(near, past, K):
                x = _tile(a, a_row, a_inner + inner, A_T)
                y = _tile(b, b_inner + inner, b_col, B_T)
                along = inner + tl.arange(0, K)
                if SIDE == 2:
                    x = keep_triangle(x, (row0 + tl.arange(0, M))[:, None], along[None, :], UPPER)
                else:
                    y = keep_triangle(y, (col0 + tl.arange(0, N))[None, :], along[:, None], UPPER == 0)
                total = tl.dot(x, y, total)
        if SIDE == 1:
            total = keep_triangle(total, row0 + tl.arange(0, M)[:, None], col0 + tl.arange(0, N)[None, :], UPPER)
        c.store([r * m + row0, col0], total.to(c.dtype))  # [M, N]

"""Triton kernels that move the features of blocks: transposed, gathered in halves of float16, and scaled back.

Imports triton: imported only to launch the kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..codegen.triton_parts import times_power
from ..cuda.float16_pairs_kernel import shift_of


@triton.jit
def gathered_place(feature, inner, D: tl.constexpr):
    """Return the place of the natural features (i, q, j) in the order (i, j, q), for q < inner and j < D."""
    of_blocks = feature.to(tl.int32) // D  # i inner + q
    i = of_blocks // inner
    q = of_blocks - i * inner
    return ((i * D + feature.to(tl.int32) % D) * inner + q).to(tl.int64)


@triton.jit
def transpose_words(
    source, target, rows, cols, source_step, target_step, inner,
    D: tl.constexpr, GATHERS: tl.constexpr, SCATTERS: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
    W: tl.constexpr,
):  # fmt: skip
    """Set target[c, r] = source[r, c] for source (rows, cols) and target (cols, rows), elements of one or two words W.

    Steps are row strides in words. A program reads a tile [R, C] along the rows of the source and
    writes it along those of the target: Triton exchanges it between threads in shared memory. With GATHERS
    features c are written to the rows `gathered_place` of the target, with SCATTERS read from those of the source.
    """
    place = tl.program_id(0)
    across = tl.cdiv(cols, C)
    r = (place // across).to(tl.int64) * R + tl.arange(0, R)
    c = (place % across).to(tl.int64) * C + tl.arange(0, C)
    here = (r < rows)[:, None] & (c < cols)[None, :]
    source_row = gathered_place(r, inner, D) if SCATTERS else r
    target_row = gathered_place(c, inner, D) if GATHERS else c
    if W == 1:
        tile = tl.load(source + source_row[:, None] * source_step + c[None, :], here)  # [R, C]
        tl.store(target + target_row[None, :] * target_step + r[:, None], tile, here)  # [R, C]
    else:
        w, here = tl.arange(0, W)[None, None, :], here[:, :, None]
        tile = tl.load(source + source_row[:, None, None] * source_step + c[None, :, None] * W + w, here)  # [R, C, W]
        # [R, C, W]
        tl.store(target + target_row[None, :, None] * target_step + r[:, None, None] * W + w, tile, here)


@triton.jit
def split_gathered(
    x, largest, shifts, high, low, features, n, x_feature, x_batch, pitch, parts, inner,
    D: tl.constexpr, TOP: tl.constexpr, MOST: tl.constexpr, F: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Split x 2^shift = high + low in float16, x (features, n) of any strides, with a shift for each column.

    Features are written to the rows `gathered_place` of `high` and `low`, which are `pitch` elements apart. Shifts are
    computed from `largest` (parts, n) and stored.
    """
    place, across = tl.program_id(0), tl.cdiv(features, F)
    f = place % across * F + tl.arange(0, F)
    s = place // across * N + tl.arange(0, N)
    here = (f < features)[:, None] & (s < n)[None, :]
    value = tl.load(x + f.to(tl.int64)[:, None] * x_feature + s.to(tl.int64)[None, :] * x_batch, here, 0.0)  # [F, N]
    shift = shift_of(largest, s, n, parts, TOP, MOST)
    tl.store(shifts + s, shift, (s < n) & (place % across == 0))  # [N]
    value = times_power(value, shift[None, :])
    head = value.to(tl.float16)
    tail = (value - head.to(tl.float32)).to(tl.float16)
    target = gathered_place(f, inner, D)[:, None] * pitch + s[None, :]
    tl.store(high + target, head, here)  # [F, N]
    tl.store(low + target, tail, here)  # [F, N]


@triton.jit
def unscale_scattered(
    product, row_shifts, shifts, y, features, n, y_feature, y_batch, inner,
    D: tl.constexpr, F: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Set y (features, n), of any strides, to the rows `gathered_place` of `product`, without the shifts.

    `product` (features, n) is contiguous; `row_shifts` are those of its rows, `shifts` those of its columns.
    """
    place, across = tl.program_id(0), tl.cdiv(features, F)
    f = place % across * F + tl.arange(0, F)
    s = place // across * N + tl.arange(0, N)
    here = (f < features)[:, None] & (s < n)[None, :]
    row = gathered_place(f, inner, D)
    value = tl.load(product + row[:, None] * n + s[None, :], here)  # [F, N]
    # [F, 1] + [1, N]
    shift = tl.load(row_shifts + row, f < features, 0)[:, None] + tl.load(shifts + s, s < n, 0)[None, :]
    tl.store(
        y + f.to(tl.int64)[:, None] * y_feature + s.to(tl.int64)[None, :] * y_batch, times_power(value, -shift), here
    )  # [F, N]

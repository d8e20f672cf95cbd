"""Triton kernels of products of float32 as three products of pairs of float16, summed in float32.

Imports triton: imported only to launch the kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..codegen.triton_parts import tile_start, times_power


@triton.jit
def largest_bits(
    x, along_shifts, largest, lines, length, line_step, along_step, span, SHIFTED: tl.constexpr, LINES: tl.constexpr,
    ALONG: tl.constexpr,
):  # fmt: skip
    """Compute the largest |x| of every line, row or column, of a float32 matrix, as bits: NaN exceeds all others.

    SHIFTED: of |x| 2^shift with a shift for each element along a line, of finite x; exponents are cut to those of
    normal numbers. A program processes LINES lines and `span` of the `length` elements of each; largest (parts, lines).
    """
    line = tl.program_id(0) * LINES + tl.arange(0, LINES)
    first = tl.program_id(1) * span
    last = tl.minimum(first + span, length)
    found = tl.zeros((LINES, ALONG), tl.int32)
    # found: by line and element modulo ALONG, the largest bits of the elements from first to start.
    for start in range(first, last, ALONG):
        along = start + tl.arange(0, ALONG)
        inside = (line < lines)[:, None] & (along < last)[None, :]
        place = line.to(tl.int64)[:, None] * line_step + along.to(tl.int64)[None, :] * along_step
        bits = tl.load(x + place, mask=inside, other=0.0).to(tl.int32, bitcast=True) & 0x7FFFFFFF  # [LINES, ALONG]
        if SHIFTED:
            shift = tl.load(along_shifts + along, mask=along < last, other=0)[None, :]  # [1, ALONG]
            # Biased exponents of normal numbers are 1 to 254; 23 bits of fraction are below them.
            exponent = tl.minimum(tl.maximum((bits >> 23) + shift, 1), 254)
            bits = tl.where(bits > 0, (exponent << 23) | (bits & 0x7FFFFF), 0)
        found = tl.maximum(found, bits)
    tl.store(largest + tl.program_id(1) * lines + line, tl.max(found, 1), mask=line < lines)  # [LINES]


@triton.jit
def shift_of(largest, line, lines, parts, TOP: tl.constexpr, MOST: tl.constexpr):
    """Return the exponent that scales a line's largest magnitude to [2^(TOP - 1), 2^TOP): at most MOST; 0 for no scale.

    The magnitude is given as bits in `largest` (parts, lines); zero and non-finite lines are not scaled.
    """
    bits = tl.zeros(line.shape, tl.int32)
    # bits: the largest of the first `first` parts. Eight at a time: their loads do not wait for one another.
    for first in range(0, parts, 8):
        part = first + tl.arange(0, 8)
        inside = (part < parts)[:, None] & (line < lines)[None, :]
        found = tl.load(largest + part[:, None] * lines + line[None, :], mask=inside, other=0)  # [8, LINES]
        bits = tl.maximum(bits, tl.max(found, 0))
    # A magnitude in [2^(e - 127), 2^(e - 126)) with the biased exponent e is scaled by 2^(TOP + 126 - e).
    shift = tl.minimum(tl.maximum(TOP + 126 - (bits >> 23), -MOST), MOST)
    return tl.where((bits > 0) & (bits < 0x7F800000), shift, 0)


@triton.jit
def split_pairs(
    x, along_shifts, largest, shifts, high, low, across, sums, rows, cols, x_row, x_col, pitch, parts,
    AXIS: tl.constexpr, SHIFTED: tl.constexpr, LOW: tl.constexpr, TOP: tl.constexpr, MOST: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Split x 2^shift = high + low in float16; a shift for each row (AXIS 0) or column (AXIS 1) of x (rows, cols).

    SHIFTED: another one is added for each element along a line. Shifts are computed from `largest` (see `shift_of`)
    and stored. Rows of `high` and `low` are `pitch` elements apart; without LOW the lower part is not stored. Sums of
    the scaled magnitudes of a tile: `across` along AXIS, (row tiles, cols) for AXIS 0, (column tiles, rows) for 1, and
    `sums` along its lines, (column tiles, rows) for AXIS 0, (row tiles, cols) for 1.
    """
    row = tl.program_id(0) * M + tl.arange(0, M)
    col = tl.program_id(1) * N + tl.arange(0, N)
    i, j = row[:, None], col[None, :]
    inside = (i < rows) & (j < cols)
    value = tl.load(x + i.to(tl.int64) * x_row + j.to(tl.int64) * x_col, mask=inside, other=0.0)  # [M, N]
    if AXIS == 0:
        line, lines, along, length = row, rows, col, cols
    else:
        line, lines, along, length = col, cols, row, rows
    of_line, of_along = tl.program_id(1 - AXIS).to(tl.int64), tl.program_id(AXIS).to(tl.int64)
    shift = shift_of(largest, line, lines, parts, TOP, MOST)
    tl.store(shifts + line, shift, mask=(line < lines) & (of_line == 0))  # [M] or [N]
    power = tl.expand_dims(shift, 1 - AXIS)
    if SHIFTED:
        more = tl.load(along_shifts + along, mask=along < length, other=0)  # [N] or [M]
        power = power + tl.expand_dims(more, AXIS)
    value = times_power(value, power)
    tl.store(across + of_along * length + along, tl.sum(tl.abs(value), AXIS), mask=along < length)  # [N] or [M]
    tl.store(sums + of_line * lines + line, tl.sum(tl.abs(value), 1 - AXIS), mask=line < lines)  # [M] or [N]
    head = value.to(tl.float16)
    place = i.to(tl.int64) * pitch + j
    tl.store(high + place, head, mask=inside)  # [M, N]
    if LOW:
        tail = (value - head.to(tl.float32)).to(tl.float16)
        tl.store(low + place, tail, mask=inside)  # [M, N]


@triton.jit
def line_shifts(largest, shifts, lines, parts, TOP: tl.constexpr, MOST: tl.constexpr, SIZE: tl.constexpr):
    """Compute the shifts of all lines; see `shift_of`."""
    line = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(shifts + line, shift_of(largest, line, lines, parts, TOP, MOST), mask=line < lines)  # [SIZE]


@triton.jit
def line_sums(
    x, shifts, weights, block_weights, plain, weighted, by_blocks, lines, length, line_step, along_step, span, block,
    WEIGHTED: tl.constexpr, LINES: tl.constexpr, ALONG: tl.constexpr,
):  # fmt: skip
    """Compute sums of |x| 2^shift over `span` elements of every line of a matrix; see `largest_bits`.

    With a shift for each element along a line; WEIGHTED: for each line, and also the sums of products with `weights`
    (length) and with `block_weights` (blocks, length), which apply to blocks of `block` lines each.
    """
    line = tl.program_id(0) * LINES + tl.arange(0, LINES)
    first = tl.program_id(1) * span
    last = tl.minimum(first + span, length)
    if WEIGHTED:
        shift = tl.load(shifts + line, mask=line < lines, other=0)[:, None]  # [LINES, 1]
    one = tl.zeros((LINES, ALONG), tl.float32)
    other = tl.zeros((LINES, ALONG), tl.float32)
    third = tl.zeros((LINES, ALONG), tl.float32)
    # one, other and third: by line and element modulo ALONG, the three sums of the elements from first to start.
    for start in range(first, last, ALONG):
        along = start + tl.arange(0, ALONG)
        inside = (line < lines)[:, None] & (along < last)[None, :]
        place = line.to(tl.int64)[:, None] * line_step + along.to(tl.int64)[None, :] * along_step
        value = tl.abs(tl.load(x + place, mask=inside, other=0.0).to(tl.float32))  # [LINES, ALONG]
        if WEIGHTED:
            value = times_power(value, shift)
            other += value * tl.load(weights + along, mask=along < last, other=0.0)[None, :]  # [1, ALONG]
            heavy = block_weights + (line // block)[:, None] * length + along[None, :]
            third += value * tl.load(heavy, mask=inside, other=0.0)  # [LINES, ALONG]
        else:
            value = times_power(value, tl.load(shifts + along, mask=along < last, other=0)[None, :])  # [1, ALONG]
        one += value
    at = tl.program_id(1) * lines + line
    tl.store(plain + at, tl.sum(one, 1), mask=line < lines)  # [LINES]
    if WEIGHTED:
        tl.store(weighted + at, tl.sum(other, 1), mask=line < lines)  # [LINES]
        tl.store(by_blocks + at, tl.sum(third, 1), mask=line < lines)  # [LINES]


@triton.jit
def _fold(parts, sums, count, length, first, ROWS: tl.constexpr, SIZE: tl.constexpr):
    """Store the sums over rows of `parts` (count, length), from element `first` on."""
    at = first + tl.arange(0, SIZE)
    row = tl.arange(0, ROWS)
    total = tl.zeros((ROWS, SIZE), tl.float32)
    # total: by element and row modulo ROWS, the sums over the first `start` rows.
    for start in range(0, count, ROWS):
        one = start + row
        place = one.to(tl.int64)[:, None] * length + at[None, :]
        total += tl.load(parts + place, mask=(one < count)[:, None] & (at < length)[None, :], other=0.0)  # [ROWS, SIZE]
    tl.store(sums + at, tl.sum(total, 0), mask=at < length)  # [SIZE]


@triton.jit
def fold_sums(
    across, weights, parts, sums, across_count, inner, parts_count, lines, ROWS: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Sum the results of the tiles of `split_pairs`: over lines to `weights` (inner), along k to `sums` (lines)."""
    first = tl.program_id(0) * SIZE
    if tl.program_id(1) == 0:
        _fold(across, weights, across_count, inner, first, ROWS, SIZE)
    else:
        _fold(parts, sums, parts_count, lines, first, ROWS, SIZE)


@triton.jit
def _loses(sums, weighted, total, others, LOST: tl.constexpr, ROUNDING: tl.constexpr):
    """Return whether lines with these sums may lose more than ROUNDING of `weighted`, or hold what is not finite.

    `total` is the sum of the other operand, and `others` the number of its lines. A line of zeros loses nothing.
    """
    total = total + tl.zeros_like(sums)
    kept = (LOST * (total + others * sums) <= ROUNDING * weighted) & (total + sums < float("inf"))
    return (kept == 0) & (sums != 0.0) & (total != 0.0)


@triton.jit
def _check(
    x, line_step, along_step, sums, weights, flag, first, lines, inner, others, LOST: tl.constexpr,
    ROUNDING: tl.constexpr, LINES: tl.constexpr, ALONG: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Set the flag if one of LINES lines may lose too much: see `check`."""
    total = tl.zeros((SIZE,), tl.float32)
    least = tl.full((SIZE,), float("inf"), tl.float32)
    # total and least: by element modulo SIZE, the sum and the minimum of the first `start` weights.
    for start in range(0, inner, SIZE):
        at = start + tl.arange(0, SIZE)
        total += tl.load(weights + at, mask=at < inner, other=0.0)  # [SIZE]
        least = tl.minimum(least, tl.load(weights + at, mask=at < inner, other=float("inf")))  # [SIZE]
    line = first + tl.arange(0, LINES)
    one = tl.load(sums + line, mask=line < lines, other=0.0)  # [LINES]
    whole = tl.sum(total, 0)
    bad = _loses(one, tl.min(least, 0) * one, whole, others, LOST, ROUNDING)
    # The least weight does not show enough: the weights of all elements do, or the line loses too much.
    last = tl.where(tl.max(bad.to(tl.int32), 0) > 0, inner, 0)
    weighted = tl.zeros((LINES, ALONG), tl.float32)
    # weighted: by line and element modulo ALONG, the weighted sums of the first `start` elements.
    for start in range(0, last, ALONG):
        along = start + tl.arange(0, ALONG)
        inside = (line < lines)[:, None] & (along < last)[None, :]
        place = line.to(tl.int64)[:, None] * line_step + along.to(tl.int64)[None, :] * along_step
        value = tl.abs(tl.load(x + place, mask=inside, other=0.0).to(tl.float32))  # [LINES, ALONG]
        weighted += value * tl.load(weights + along, mask=along < last, other=0.0)[None, :]  # [1, ALONG]
    bad &= _loses(one, tl.sum(weighted, 1), whole, others, LOST, ROUNDING)
    tl.store(flag, 1, mask=tl.max(bad.to(tl.int32), 0) > 0)  # one number []


@triton.jit
def check(
    a, b, sums_a, sums_b, weights_a, weights_b, flag, m, k, n, a_row, b_row, LOST: tl.constexpr, ROUNDING: tl.constexpr,
    LINES: tl.constexpr, ALONG: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Set the flag if a row or column of C may lose too much.

    a (m, k) and b (k, n) are scaled float16, stored by rows; `sums` are of the magnitudes of the rows of A and columns
    of B, `weights` (k) of those across them. The weighted sum of a line is at least its sum times the least weight;
    elements are read only where that does not suffice. The grid is (blocks of LINES lines, 2): of A, then of B.
    """
    first = tl.program_id(0) * LINES
    if tl.program_id(1) == 0:
        _check(a, a_row, 1, sums_a, weights_b, flag, first, m, k, n, LOST, ROUNDING, LINES, ALONG, SIZE)
    else:
        _check(b, 1, b_row, sums_b, weights_a, flag, first, n, k, m, LOST, ROUNDING, LINES, ALONG, SIZE)


@triton.jit
def pairs_gemm(
    a, b, row_shifts, col_shifts, c, count, m, k, n, c_slab, c_row, c_col, GROUP: tl.constexpr, SCALED: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Compute C_r = A_r B_r for `count` products, A_r (m, k) and B_r (k, n) in pairs, except lower by lower part.

    `a` and `b` are descriptors of all higher parts, then all lower ones, stacked vertically. SCALED: rows and columns
    of C are divided by powers of two. Tensor cores accumulate with fewer bits than float32: the sum of K terms
    is added to an accumulator in float32. Programs compute tiles in groups of GROUP rows, which share columns of B in
    the cache.
    """
    tiles = tl.cdiv(m, M) * tl.cdiv(n, N)
    r = tl.program_id(0) // tiles
    row0, col0 = tile_start(tl.program_id(0) % tiles, m, n, GROUP, M, N)
    total = tl.zeros((M, N), tl.float32)
    # A tile that extends beyond k reads zeros of A, and finite numbers of the next B.
    # total: the sum over the first `inner` elements of k, of sums of K terms by tensor cores.
    for inner in range(0, k, K):
        x, x_low = a.load([r * m + row0, inner]), a.load([(count + r) * m + row0, inner])  # [M, K], [M, K]
        y, y_low = b.load([r * k + inner, col0]), b.load([(count + r) * k + inner, col0])  # [K, N], [K, N]
        part = tl.dot(x_low, y)
        part = tl.dot(x, y_low, part)
        part = tl.dot(x, y, part)
        total += part
    i = row0 + tl.arange(0, M)[:, None]
    j = col0 + tl.arange(0, N)[None, :]
    if SCALED:
        # [M, 1] + [1, N]
        shift = tl.load(row_shifts + i, mask=i < m, other=0) + tl.load(col_shifts + j, mask=j < n, other=0)
        total = times_power(total, -shift)
    place = c + r.to(tl.int64) * c_slab + i.to(tl.int64) * c_row + j.to(tl.int64) * c_col
    tl.store(place, total, mask=(i < m) & (j < n))  # [M, N]

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
    and stored. Rows of `high` and `low` are `pitch` elements apart. `across` are the sums of the scaled magnitudes of a
    tile along AXIS: (row tiles, cols) for AXIS 0, (column tiles, rows) for AXIS 1. Without LOW the lower part is not
    stored, but the sums of a tile along its lines: `sums` (column tiles, rows) for AXIS 0, (row tiles, cols) for 1.
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
    if not LOW:
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
    SHIFTED: tl.constexpr, WEIGHTS: tl.constexpr, LINES: tl.constexpr, ALONG: tl.constexpr,
):  # fmt: skip
    """Compute sums of |x| over `span` elements of every line of a matrix; see `largest_bits`.

    SHIFTED: of |x| 2^shift, with a shift for each line (1) or for each element along a line (2); 0: without.
    WEIGHTS: 1: also the sums of products with `weights` (length); 2: also with `block_weights` (blocks, length),
    which apply to blocks of `block` lines each.
    """
    line = tl.program_id(0) * LINES + tl.arange(0, LINES)
    first = tl.program_id(1) * span
    last = tl.minimum(first + span, length)
    if SHIFTED == 1:
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
        if SHIFTED == 1:
            value = times_power(value, shift)
        if SHIFTED == 2:
            value = times_power(value, tl.load(shifts + along, mask=along < last, other=0)[None, :])  # [1, ALONG]
        one += value
        if WEIGHTS:
            other += value * tl.load(weights + along, mask=along < last, other=0.0)[None, :]  # [1, ALONG]
        if WEIGHTS == 2:
            heavy = block_weights + (line // block)[:, None] * length + along[None, :]
            third += value * tl.load(heavy, mask=inside, other=0.0)  # [LINES, ALONG]
    at = tl.program_id(1) * lines + line
    tl.store(plain + at, tl.sum(one, 1), mask=line < lines)  # [LINES]
    if WEIGHTS:
        tl.store(weighted + at, tl.sum(other, 1), mask=line < lines)  # [LINES]
    if WEIGHTS == 2:
        tl.store(by_blocks + at, tl.sum(third, 1), mask=line < lines)  # [LINES]


@triton.jit
def _total(sums, largest, lines, parts, SIZE: tl.constexpr):
    """Return the sum of `sums` (parts, lines), the number of lines with a nonzero entry, and the largest bits."""
    total = tl.zeros((SIZE,), tl.float32)
    some = tl.zeros((SIZE,), tl.int32)
    most = tl.zeros((SIZE,), tl.int32)
    # total, some and most: by line modulo SIZE, over the first `start` lines.
    for start in range(0, lines, SIZE):
        line = start + tl.arange(0, SIZE)
        bits = tl.zeros((SIZE,), tl.int32)
        # bits: the largest of the first `part` parts of each line.
        for part in range(parts):
            total += tl.load(sums + part * lines + line, mask=line < lines, other=0.0)  # [SIZE]
            bits = tl.maximum(bits, tl.load(largest + part * lines + line, mask=line < lines, other=0))  # [SIZE]
        some += (bits > 0).to(tl.int32)
        most = tl.maximum(most, bits)
    return tl.sum(total, 0), tl.sum(some, 0), tl.max(most, 0)


@triton.jit
def _lost_too_much(
    sums, weighted, largest, lines, parts, other_sum, others, LOST: tl.constexpr, ROUNDING: tl.constexpr,
    SIZE: tl.constexpr,
):  # fmt: skip
    """Return the number of nonzero lines that may lose more than ROUNDING of their weighted sum."""
    count = tl.zeros((SIZE,), tl.int32)
    # count: by line modulo SIZE, the number among the first `start` lines.
    for start in range(0, lines, SIZE):
        line = start + tl.arange(0, SIZE)
        bits = tl.zeros((SIZE,), tl.int32)
        one = tl.zeros((SIZE,), tl.float32)
        other = tl.zeros((SIZE,), tl.float32)
        # one, other and bits: of the first `part` parts of each line.
        for part in range(parts):
            one += tl.load(sums + part * lines + line, mask=line < lines, other=0.0)  # [SIZE]
            other += tl.load(weighted + part * lines + line, mask=line < lines, other=0.0)  # [SIZE]
            bits = tl.maximum(bits, tl.load(largest + part * lines + line, mask=line < lines, other=0))  # [SIZE]
        kept = LOST * (other_sum + others * one) <= ROUNDING * other
        count += ((bits > 0) & (kept == 0)).to(tl.int32)
    return tl.sum(count, 0)


@triton.jit
def verdict(
    found, sums_a, weighted_a, largest_a, sums_b, weighted_b, largest_b, m, n, parts, LOST: tl.constexpr,
    ROUNDING: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Set found to the bits of the largest magnitude of A and B, and the number of lines of C that lose too much.

    See `float16_pairs._found`. The inputs are results of `line_sums` and `largest_bits` for rows of A and columns of B.
    """
    sum_a, some_a, most_a = _total(sums_a, largest_a, m, parts, SIZE)
    sum_b, some_b, most_b = _total(sums_b, largest_b, n, parts, SIZE)
    rows = _lost_too_much(sums_a, weighted_a, largest_a, m, parts, sum_b, some_b, LOST, ROUNDING, SIZE)
    cols = _lost_too_much(sums_b, weighted_b, largest_b, n, parts, sum_a, some_a, LOST, ROUNDING, SIZE)
    tl.store(found, tl.maximum(most_a, most_b))  # one number []
    tl.store(found + 1, tl.where((some_a > 0) & (some_b > 0), rows + cols, 0))  # one number []


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

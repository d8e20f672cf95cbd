"""Predicted seconds of Kronecker-sparse products on a GPU: permutations, Triton tiles, widened GEMMs, launches.

Constants are those of an H200 with torch 2.11 and Triton 3.6 at batch 25088: every candidate of 53 patterns of the
paper's list and of 11 others, batch-first, and of 43 batch-last. The cost model has the rates of plain GEMMs and sums.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..cuda.cost_model import CudaCostModel
from ..cuda.dtypes import itemsize
from ..dtypes import dtype_of
from .pattern import Pattern
from .tiles import tile_of

COPY_SHARES: Mapping[int, tuple[tuple[int, float], ...]] = {
    2: ((2, 0.41), (32, 0.24), (112, 0.175)),
    4: ((2, 0.57), (32, 0.42), (80, 0.385), (112, 0.28)),
    8: ((2, 0.8),),
    16: ((2, 0.8),),
}
"""By bytes of an element, the part of the rate of sums at which torch permutes the features within each column, from so
many diagonals d up. Medians of what bmm takes beside its GEMM; 8 bytes: of one pattern; 16 bytes
were not measured and are taken as 8: runs of memory are longer."""

ROW_COPY_SHARES: Mapping[int, float] = {2: 0.37, 4: 0.6, 8: 0.82, 16: 0.82}
"""The same where whole rows of the batch are moved: batch-last, whatever d is; 16 bytes again as 8."""

TRANSPOSITION_SHARES: dict[int, float] = {2: 0.9, 4: 0.95, 8: 0.97}
"""By bytes of an element, the part of the rate of sums at which our kernel transposes: measured on matrices of 0.2 to
2.5 GB; 25 to 50 MB reach 0.7 to 0.9. torch's own copy of a transposed view reaches 0.15, 0.28 and 0.48."""

GATHER_SHARES: dict[str, tuple[float, float]] = {}
FUSED_SHARES: dict[str, tuple[float, float]] = {}
"""By dtype, what the kernels that gather and fuse reach: parts of the rate of sums, where traffic bounds them, and of
the vendor's best strict rate, where multiplying does. None is measured yet, see TRANSPOSITION_SHARES."""

WIDENED_GAINS: Mapping[str, float] = {"float16": 1.3, "bfloat16": 1.2, "tf32": 1.25, "float64": 1.25}
"""By dtype, by how much a GEMM of widened blocks is faster than one of as many nonzeros: zeros take less power, and
tensor cores at the power limit of the card run faster. float16: 45 patterns, 1.18 to 1.39; the others: one pattern
each. Strict float32 gains nothing."""

STREAM_SHARE = 0.74
"""The part of the rate of sums at which a tile of one diagonal reads and writes, where traffic bounds it."""


@dataclass(frozen=True)
class TileRate:
    """What a Triton tile reaches: a part of the vendor's best rate, for multiplications that include the padding, and
    by how many more columns c the start and the end of a program count."""

    share: float
    columns: int


_WIDE = (TileRate(0.242, 8), TileRate(0.233, 0), TileRate(0.226, 8))
_WIDE_NEIGHBOURS = (TileRate(0.12, 12), TileRate(0.167, 24), TileRate(0.12, 8))
_SPLIT = (TileRate(0.158, 40), TileRate(0.15, 72), TileRate(0.134, 48))
_SPLIT_NEIGHBOURS = (TileRate(0.0414, 24), TileRate(0.0586, 68), TileRate(0.0576, 36))
_HALF_NEIGHBOURS = (TileRate(0.0756, 96), TileRate(0.0556, 136), TileRate(0.0549, 68))

TILE_RATES: dict[str, tuple[tuple[TileRate, ...], tuple[TileRate, ...]]] = {
    "float32": (_WIDE, _WIDE_NEIGHBOURS),
    "tf32x3": (_SPLIT, _SPLIT_NEIGHBOURS),
    "float16": ((TileRate(0.33, 8),) * 3, _HALF_NEIGHBOURS),
    "bfloat16": ((), _HALF_NEIGHBOURS),
    "tf32": ((), (TileRate(0.097, 96), TileRate(0.064, 96), TileRate(0.085, 96))),
    "float64": ((), (TileRate(0.155, 68),)),
}
"""By dtype, the rates of tiles of one diagonal and of several, in the order of `tiles.TILES`; of tf32x3 parts of the
vendor's tf32 rate. Least squares over 58 patterns with d > 1 leave 6 to 9% in float32, 9 to 13% in tf32x3 and 9 to 19%
in float16; those of d = 1 rest on 2 to 5 patterns, bfloat16, tf32 and float64 on three. An empty list was not measured:
such a kernel is run where it is named or where `lcma tune` found it fastest. Those of tf32 were measured before the
kernels rounded operands. All were measured batch-first: batch-last the tiles of several diagonals take 0.5 to 0.9 of
this, and never won but below 50 us."""

CALL, LAUNCH = 22e-6, 8e-6
"""Seconds of the host for a call and for each kernel that it starts, which shorter work does not hide."""

VIEWS: Mapping[str, float] = {"strided": 5e-6, "widened": 5e-6, "dense": 5e-6, "bmm": 11e-6}
"""Seconds of the host by factor for making views."""

SHOWN = 2e-6
"""Seconds by factor of the baseline's views that longer work does not hide: it is 1 to 10 us behind the same GEMM."""


def block_seconds(dtype: str, b: int, c: int, n: int, blocks: int, costs: CudaCostModel) -> float:
    """Seconds of one batched GEMM by so many blocks (b, c); NaN: its rate was not measured.

    The vendor has no sum of three products of tf32: such a request is multiplied strictly. Complex products were not
    measured: they are priced as real ones of (2b, 2c), which multiply as often.
    """
    dtype = "float32" if dtype == "tf32x3" else dtype
    kind = dtype_of(dtype)
    name = dtype if kind.parts == 1 else kind.component
    return float(costs.gemm(name, kind.parts * b, kind.parts * c, n, blocks, "batched"))


def permutation_seconds(pattern: Pattern, elements: float, item: int, costs: CudaCostModel, rows: bool) -> float:
    """Seconds in which torch permutes so many elements, by rows of the batch or within columns."""
    share = ROW_COPY_SHARES[item]
    if not rows:
        share = [part for least, part in COPY_SHARES[item] if least <= pattern.d][-1]
    return float(costs.combine(2 * elements * item)) / share


def transposition_seconds(moved: float, kernels: int, item: int, costs: CudaCostModel) -> float:
    """Seconds in which our kernel moves so many bytes in so many launches; NaN where it was not measured."""
    if item not in TRANSPOSITION_SHARES or not kernels:
        return math.nan
    return kernels * float(costs.combine(moved / kernels)) / TRANSPOSITION_SHARES[item]


def tile_seconds(pattern: Pattern, n: int, dtype: str, choice: int, costs: CudaCostModel) -> float:
    """Seconds of a Triton kernel: bound by traffic or by arithmetic, padding included; NaN: it was not measured."""
    rates = TILE_RATES.get(dtype, ((), ()))[pattern.d > 1]
    if not rates:
        return math.nan
    rate, tile = rates[min(choice, len(rates) - 1)], tile_of(dtype, pattern, choice)
    moved = ((pattern.rows + pattern.cols) * n + pattern.nonzeros) * itemsize(dtype)
    padded = tile.padded(pattern)
    work = padded + rate.columns * padded / tile.sum_length(pattern)
    vendor = costs.best_rate("tf32" if dtype == "tf32x3" else dtype)
    return max(float(costs.combine(moved)) / STREAM_SHARE, 2 * work * n / (rate.share * vendor))


def scalar_seconds(
    patterns: Sequence[Pattern], n: int, dtype: str, shares: Mapping[str, tuple[float, float]], costs: CudaCostModel
) -> float:
    """Seconds of one launch that multiplies by these factors on scalar units; NaN where it was not measured."""
    if dtype not in shares:
        return math.nan
    of_traffic, of_rate = shares[dtype]
    parameters = sum(one.nonzeros for one in patterns)
    moved = ((patterns[0].rows + patterns[-1].cols) * n + parameters) * itemsize(dtype)
    flops = 2.0 * dtype_of(dtype).parts ** 2 * parameters * n
    vendor = costs.best_rate("float64" if dtype in ("float64", "complex128") else "float32")
    return max(float(costs.combine(moved)) / of_traffic, flops / (of_rate * vendor))


def host_seconds(strategy: str, factors: int, launches: int) -> float:
    """Seconds of the host for a product of so many factors by so many kernels."""
    return CALL + factors * VIEWS.get(strategy, 0.0) + launches * LAUNCH

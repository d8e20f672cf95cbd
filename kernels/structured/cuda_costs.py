"""Predicted stages of products by factors on a GPU, and their prices: GEMMs, permutations, Triton tiles, launches.

Constants are those of an H200 with torch 2.11 and Triton 3.6. Those of Kronecker-sparse products are of calls at batch
25088: every candidate of 53 patterns of the paper's list and of 11 others, batch-first, and of 43 batch-last; the cost
model has the rates of plain GEMMs and sums. Those of low-rank, Monarch and BLAST products in half precision are of CUDA
graphs, fitted to `docs/results/blr-cuda.jsonl`: 16 layers in bfloat16 by `lcma bench blr`;
tests/kernels/structured/test_replay.py compares predicted and measured seconds. Rates, bandwidth, multiprocessors
and cache are the profile's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..cuda.cost_model import UNALIGNED, CudaCostModel, row_multiple
from ..cuda.dtypes import itemsize
from ..dtypes import dtype_of
from ..planning.machine import Machine
from ..planning.strategy import Stage
from ..precision import ACCURATE, TF32
from ..request import Request
from .block_low_rank import Blast, BlockLowRank
from .blocks import alternating_rows
from .chain import FactorChain, KroneckerSparse
from .pattern import Pattern
from .rewrites import BY_HALVES, DENSE, REWRITES, WIDENED, rewritten_chain
from .scalar import fused_places, gather_reason
from .split import TILES as SPLIT_TILES
from .split import split_seconds
from .strategy import FUSED, GATHER, STRIDED, TILED, TRANSPOSED, batch_first
from .tiles import tile_of
from .views import FactorStep, copied_ends, steps_of

COPY_SHARES: Mapping[int, tuple[tuple[int, float], ...]] = {
    2: ((2, 0.41), (32, 0.24), (112, 0.175)),
    4: ((2, 0.57), (32, 0.42), (80, 0.385), (112, 0.28)),
    8: ((2, 0.8),),
    16: ((2, 0.8),),
}
"""Pairs by bytes of an element: from so many diagonals d up, the fraction of the rate of sums at which torch permutes
the features within each column. Medians of bmm's time beyond its GEMM; 8 bytes: one pattern; 16 bytes
were not measured and are assumed equal to 8, as contiguous runs are longer.
"""

TRANSPOSITION_SHARES: dict[int, float] = {2: 0.9, 4: 0.95, 8: 0.97}
"""Fraction of the rate of sums, by bytes of an element, at which our kernel transposes: measured on matrices of 0.2
to 2.5 GB; 25 to 50 MB reach 0.7 to 0.9. torch's own copy of a transposed view reaches 0.15, 0.28 and 0.48.
"""

GATHER_SHARES: dict[str, tuple[float, float]] = {"float32": (0.85, 0.132), "float16": (0.75, 0.173)}
FUSED_SHARES: dict[str, tuple[float, float]] = {"complex64": (0.25, 0.088)}
"""Fractions, by dtype, that the gathering and fused kernels reach: of the rate of sums if memory-bound, and of
the vendor's best strict rate if compute-bound. Measured on an H200: 7 patterns with blocks of 2 to 32 in both
layouts (error up to 24 and 29%), 4 transforms (11%). Missing dtypes were not measured, or scatter by a factor of two.
"""

WIDENED_GAINS: Mapping[str, float] = {"float16": 1.3, "bfloat16": 1.2, "tf32": 1.25, "float64": 1.25}
"""Speedup, by dtype, of a GEMM of widened blocks over one of as many nonzeros: zeros need less power, and
tensor cores at the power limit of the card run faster. float16: 45 patterns, 1.18 to 1.39; the others: one pattern
each. Strict float32 gains nothing.
"""

STREAM_SHARE = 0.74
"""Fraction of the rate of sums at which a tile of one diagonal reads and writes, if memory-bound."""


@dataclass(frozen=True)
class TileRate:
    """The rate of a Triton tile: a fraction of the vendor's best rate, for multiplications including the padding, and
    the overhead of the start and the end of a program, in columns c.
    """

    share: float
    columns: int


_WIDE = (TileRate(0.242, 8), TileRate(0.233, 0), TileRate(0.226, 8))
_WIDE_NEIGHBOURS = (TileRate(0.12, 12), TileRate(0.167, 24), TileRate(0.12, 8))
_SPLIT = (TileRate(0.158, 40), TileRate(0.15, 72), TileRate(0.134, 48))
_SPLIT_NEIGHBOURS = (TileRate(0.0414, 24), TileRate(0.0586, 68), TileRate(0.0576, 36))
_HALF_NEIGHBOURS = (TileRate(0.0756, 96), TileRate(0.0556, 136), TileRate(0.0549, 68))

TILE_RATES: dict[str, tuple[tuple[TileRate, ...], tuple[TileRate, ...]]] = {
    "float32": (_WIDE, _WIDE_NEIGHBOURS),
    ACCURATE: (_SPLIT, _SPLIT_NEIGHBOURS),
    "float16": ((TileRate(0.33, 8),) * 3, _HALF_NEIGHBOURS),
    "bfloat16": ((), _HALF_NEIGHBOURS),
    "tf32": ((), (TileRate(0.097, 96), TileRate(0.064, 96), TileRate(0.085, 96))),
    "float64": ((), (TileRate(0.155, 68),)),
}
"""Rates, by arithmetic, of tiles of one diagonal and of several, in the order of `tiles.TILES`; of ACCURATE, which is
three products of tf32 in these kernels, relative to the vendor's tf32 rate. Least squares over 58 patterns with d > 1
leave 6 to 9% in float32, 9 to 13% in ACCURATE and 9 to 19% in float16; those of d = 1 are of 2 to 5 patterns, bfloat16,
tf32 and float64 of three. An empty list was not measured: such a kernel runs if it is named or if `lcma tune` found it
fastest. Those of tf32 were measured before the kernels rounded operands. All were measured batch-first: batch-last the
tiles of several diagonals reach 0.5 to 0.9 of this, and were fastest only below 50 us."""

CALL, LAUNCH = 22e-6, 8e-6
"""Host seconds of a call and of each kernel launch, hidden if the device takes longer."""

VIEWS: Mapping[str, float] = {**dict.fromkeys((STRIDED, WIDENED, DENSE, TRANSPOSED), 5e-6), BY_HALVES: 160e-6}
"""Host seconds per factor for creating views; of split for its memory and two descriptors too, from (1,192,192,2)."""

SPLIT_LAUNCHES = 4
"""Kernels of a factor by halves: the largest entries of columns, the halves, the product, the result."""

FEW_COLUMNS = 16
"""Up to so many columns a step is a read of its weights, which were not in the cache."""

LARGE_TILES = (128, 256), (256, 128), (128, 192), (192, 128), (128, 128)
VENDOR_TILES = *LARGE_TILES, (64, 256), (256, 64), (64, 128), (128, 64), (64, 64)
"""Rows and columns of the vendor's tiles; K_TILE is their step over the sum."""

K_TILE = 64

START, SPLIT_SUM = 3.4e-6, 1.3e-6
"""Seconds of a launch beside its work, and of adding the parts of a sum over k that several programs share."""

MOST_WAVES, LEAST_PART = 4, 512
"""Sums over k are split into parts of at least LEAST_PART if there are fewer waves of tiles than this."""

OVER_BEST = 1.2
"""Rate inside a full wave over the best rate of the profile, which includes launches and the last wave."""

EXPOSED = 0.5
"""The part of the shorter of multiplying and moving that the longer one does not hide."""

IN_CACHE = 2.0
"""Bandwidth over that of memory if all operands and results of a product fit in the last cache."""

REPLAY, SPLIT_READ = 2.9e-6, 2.5e-6
"""Few columns: seconds of a replay beside its launches, and of the second launch that matrices with more columns than
rows need, whose sums several programs share."""

READ_SHARE, BATCHED_READ_SHARE = 0.76, 0.38
"""Few columns: fractions of the bandwidth at which one matrix of weights and a batch of them are read."""

SMALL_PRODUCT = 23e-9
"""Few columns: seconds of one product of a batch, which bounds BLAST's middle step."""

MANY = 512
"""Columns from which on tiled BLAST products have a price: measured from 1024 on, in each of 28 layers faster than
strided ones, by 1% to 150%."""


def strict(dtype: str) -> str:
    """Return the arithmetic of products without tensor cores, and of the vendor's, where ACCURATE is permitted."""
    return "float32" if dtype == ACCURATE else dtype


def block_seconds(dtype: str, b: int, c: int, n: int, blocks: int, costs: CudaCostModel) -> float:
    """Return the seconds of one batched GEMM by so many blocks (b, c); NaN if its rate was not measured.

    The vendor has no product of the precision ACCURATE: such a request is multiplied strictly. Complex products were
    not measured: they are priced as real ones of (2b, 2c), with as many multiplications.
    """
    dtype = strict(dtype)
    kind = dtype_of(dtype)
    name = dtype if kind.parts == 1 else kind.component
    return float(costs.gemm(name, kind.parts * b, kind.parts * c, n, blocks, "batched"))


def tile_seconds(pattern: Pattern, n: int, dtype: str, choice: int, costs: CudaCostModel) -> float:
    """Return the seconds of a Triton kernel: the larger of traffic and padded arithmetic; NaN if not measured."""
    rates = TILE_RATES.get(dtype, ((), ()))[pattern.d > 1]
    if not rates:
        return math.nan
    tile = tile_of(dtype, pattern, choice)
    if tile.j == 1 < pattern.d:  # tiles of one diagonal were measured for d = 1 only
        return math.nan
    rate = rates[min(choice, len(rates) - 1)]
    moved = ((pattern.rows + pattern.cols) * n + pattern.nonzeros) * itemsize(dtype)
    padded = tile.padded(pattern)
    work = padded + rate.columns * padded / tile.sum_length(pattern)
    vendor = costs.best_rate(TF32 if dtype == ACCURATE else dtype)
    return max(float(costs.combine(moved)) / STREAM_SHARE, 2 * work * n / (rate.share * vendor))


def scalar_seconds(
    patterns: Sequence[Pattern], n: int, dtype: str, shares: Mapping[str, tuple[float, float]], costs: CudaCostModel
) -> float:
    """Return the seconds of one launch for these factors on scalar units; NaN if not measured."""
    dtype = strict(dtype)
    if dtype not in shares:
        return math.nan
    of_traffic, of_rate = shares[dtype]
    parameters = sum(one.nonzeros for one in patterns)
    moved = ((patterns[0].rows + patterns[-1].cols) * n + parameters) * itemsize(dtype)
    flops = 2.0 * dtype_of(dtype).parts ** 2 * parameters * n
    vendor = costs.best_rate("float64" if dtype in ("float64", "complex128") else "float32")
    return max(float(costs.combine(moved)) / of_traffic, flops / (of_rate * vendor))


def is_calibrated(dtype: str, costs: CudaCostModel) -> bool:
    """Return whether these prices apply: half precision, on a GPU whose multiprocessors and rates are known."""
    return dtype in ("bfloat16", "float16") and costs.units > 1 and costs.knows(dtype) and bool(costs.profile.bandwidth)


def moving_seconds(moved: float, in_cache: bool, costs: CudaCostModel) -> float:
    """Return the seconds in which so many bytes are moved."""
    return moved / ((costs.profile.bandwidth or math.inf) * (IN_CACHE if in_cache else 1.0))


def gemm_seconds(
    factor: Pattern, n: int, dtype: str, item: int, in_cache: bool, launches: int, costs: CudaCostModel
) -> float:
    """Return the seconds of one of the `launches` of a product by the vendor, single or batched."""
    if n <= FEW_COLUMNS:
        return REPLAY / launches + _few_seconds(factor, item, costs)
    computing = _computing_seconds(factor, n, dtype, costs)
    moving = moving_seconds(factor.moved_elements(n) * item, in_cache, costs)
    return START + max(computing, moving) + EXPOSED * min(computing, moving)


def _few_seconds(factor: Pattern, item: int, costs: CudaCostModel) -> float:
    share = READ_SHARE if factor.blocks == 1 else BATCHED_READ_SHARE
    reading = factor.nonzeros * item / (share * (costs.profile.bandwidth or math.inf))
    if factor.blocks > 1:
        return START + max(reading, factor.blocks * SMALL_PRODUCT)
    return START + reading + (SPLIT_READ if factor.b <= factor.c else 0.0)


def _computing_seconds(factor: Pattern, n: int, dtype: str, costs: CudaCostModel) -> float:
    """Return the seconds of whole waves of whole tiles, the sum over k split or not, whichever is faster."""
    units, k = costs.units, -(-factor.c // K_TILE) * K_TILE
    rate = OVER_BEST * costs.best_rate(dtype) * UNALIGNED[dtype].get(int(row_multiple(dtype, factor.c, K_TILE)), 1.0)
    best = math.inf
    for rows, cols in VENDOR_TILES:
        tiles = factor.blocks * math.ceil(factor.b / rows) * math.ceil(n / cols)
        each = 2.0 * rows * cols * k * units / rate  # seconds of a wave: units tiles at once
        best = min(best, each * math.ceil(tiles / units))
        parts = 2
        while tiles < MOST_WAVES * units and factor.c >= parts * LEAST_PART:
            best = min(best, SPLIT_SUM + each / parts * math.ceil(tiles * parts / units))
            parts *= 2
    return best


def view_stages(strategy: str, structure: FactorChain, request: Request, machine: Machine) -> list[Stage]:
    """Return the stages of GEMMs on views, by the factors or by rewritten ones, and of permuted or transposed ends."""
    structure = rewritten_chain(structure, strategy) if strategy in REWRITES else structure
    ends = copied_ends(structure, *batch_first(request))
    steps, stages, costs = steps_of(structure, *ends), [], CudaCostModel.of(machine)
    launches = sum(step.calls for step in steps)
    for step in steps:
        stages.append(_gemm_stage(step, request, costs, strategy == WIDENED))
        features = step.pattern.cols * (ends[0] and step is steps[0])
        features += step.pattern.rows * (ends[1] and step is steps[-1])
        if features and strategy != TRANSPOSED:
            moved = 2 * features * request.n * request.itemsize
            share = [part for least, part in COPY_SHARES[request.itemsize] if least <= step.pattern.d][-1]
            stages.append(Stage("permutations", 0, moved, costs.combine(moved) / share))
            launches += 2
    if strategy == TRANSPOSED:
        stages.append(_transpositions(structure, *ends, request, costs))
        launches += sum(ends)
    return with_launches(stages, strategy, len(steps), launches)


def kernel_stages(
    strategy: str, structure: FactorChain, choice: int, request: Request, machine: Machine
) -> list[Stage]:
    """Return the stages of launches of our kernels; a factor that none multiplies runs by GEMMs on views."""
    patterns, costs, n, dtype = structure.patterns, CudaCostModel.of(machine), request.n, request.arithmetic
    stages: list[Stage] = []
    launches = fused_places(patterns, n, dtype) if strategy == FUSED else [(i,) for i in range(len(patterns))[::-1]]
    for places in launches:
        some = [patterns[place] for place in places]
        if strategy == TILED:
            seconds = tile_seconds(some[0], n, dtype, choice, costs)
        elif len(some) == 2:
            seconds = scalar_seconds(some, n, dtype, FUSED_SHARES, costs)
        elif strategy == GATHER or gather_reason(some, n, dtype) is None:
            seconds = scalar_seconds(some, n, dtype, GATHER_SHARES, costs)
        else:
            stages.append(_gemm_stage(steps_of(KroneckerSparse((some[0],)))[0], request, costs))
            continue
        stages.append(factor_stage(some, n, request, seconds))
    return with_launches(stages, strategy, len(patterns), len(patterns))


def factor_stage(
    patterns: Sequence[Pattern], n: int, request: Request, seconds: float, product: tuple[int, int, int] | None = None
) -> Stage:
    """Return the stage of one factor or two neighbours for n columns; NaN seconds are unknown."""
    parameters = sum(one.nonzeros for one in patterns)
    moved = ((patterns[0].rows + patterns[-1].cols) * n + parameters) * request.itemsize
    flops = 2.0 * dtype_of(request.dtype).parts ** 2 * parameters * n
    return Stage(" * ".join(one.label for one in patterns), flops, moved, seconds, product)


def _transpositions(structure: FactorChain, first: bool, last: bool, request: Request, costs: CudaCostModel) -> Stage:
    """Return the stage of transposed ends, without traffic within the cache."""
    item, n, patterns = request.itemsize, request.n, structure.patterns
    held = sum(alternating_rows(patterns, first, last)) * n * item
    passes = 1 if held <= max(costs.profile.caches, default=0) else 2
    moved, kernels = passes * (patterns[-1].cols * first + patterns[0].rows * last) * n * item, first + last
    seconds = None
    if item in TRANSPOSITION_SHARES and kernels:
        seconds = kernels * float(costs.combine(moved / kernels)) / TRANSPOSITION_SHARES[item]
    return Stage("transpositions", 0, moved, seconds)


def split_stages(structure: FactorChain, request: Request, machine: Machine) -> list[Stage]:
    """Return the stages of products by halves; prices are those of dense ones and of our transpositions."""
    stages, costs, n = [], CudaCostModel.of(machine), request.n
    for one in reversed(structure.patterns):
        given, wanted = 4 * one.cols * n, 4 * one.rows * n
        turned = float(costs.combine(3 * given) + costs.combine(2 * wanted)) / TRANSPOSITION_SHARES[4]
        multiplied = min(split_seconds(one, n, *tile) for tile in SPLIT_TILES)
        streamed = float(costs.combine(given + wanted)) / STREAM_SHARE
        stages.append(Stage("halves and scales", 0, 3 * given + 2 * wanted, turned))
        flops, seconds = 2.0 * one.nonzeros * n, max(multiplied, streamed)
        stages.append(Stage(one.label, flops, given + wanted, seconds, (one.b, one.c, n)))
    factors = len(structure.patterns)
    return with_launches(stages, BY_HALVES, factors, SPLIT_LAUNCHES * factors)


def with_launches(stages: list[Stage], strategy: str, factors: int, launches: int) -> list[Stage]:
    """Return the stages and one of the host's time that they do not hide, if their seconds are known."""
    known_seconds = [stage.seconds for stage in stages if stage.seconds is not None]
    shown = CALL + factors * VIEWS.get(strategy, 0.0) + launches * LAUNCH - sum(known_seconds)
    if len(known_seconds) < len(stages) or shown <= 0:
        return stages
    return [*stages, Stage("launches", 0, 0, shown)]


def _gemm_stage(step: FactorStep, request: Request, costs: CudaCostModel, widened: bool = False) -> Stage:
    """Return the stage of the batched GEMMs of one factor."""
    one, n, calls = step.pattern, request.n, step.calls
    seconds = calls * block_seconds(request.arithmetic, one.b, one.c, n, one.blocks // calls, costs)
    if widened:
        moving = float(costs.combine(one.moved_elements(n) * request.itemsize))
        seconds = max(seconds / WIDENED_GAINS.get(request.arithmetic, 1.0), moving)
    return factor_stage((one,), n, request, seconds, (one.b, one.c, n))


def block_stages(strategy: str, structure: BlockLowRank, request: Request, machine: Machine) -> list[Stage]:
    """Return the stages of a low-rank, Monarch or BLAST product by GEMMs, or with one of our kernels.

    Without seconds where the strategy was not measured: tiled has a price for BLAST products of many columns, where
    the middle products by our kernel take what the copy of their operands takes. Uncalibrated dtypes are priced by
    measured rates and copies.
    """
    n, item, dtype, costs = request.n, request.itemsize, request.arithmetic, CudaCostModel.of(machine)
    factors = (Pattern(1, structure.rows, structure.cols, 1),) if strategy == DENSE else structure.patterns[::-1]
    priced = strategy in (STRIDED, DENSE) or (strategy == TILED and isinstance(structure, Blast) and n >= MANY)
    whole, calibrated = item * sum(one.moved_elements(n) for one in factors), is_calibrated(dtype, costs)
    hot = n > FEW_COLUMNS and whole <= max(costs.profile.caches, default=0)  # all that is read and written is cached
    stages = []
    for one in factors:
        size, mixed = one.moved_elements(n) * item, strategy == TILED and one is factors[1]
        if not priced:
            seconds = math.nan
        elif calibrated:
            by_vendor = gemm_seconds(one, n, dtype, item, hot, len(factors), costs)
            seconds = START + moving_seconds(size, hot, costs) if mixed else by_vendor
        else:
            multiplying = 0.0 if mixed else block_seconds(dtype, one.b, one.c, n, one.blocks, costs)
            seconds = max(multiplying, float(costs.combine(size)))
        stages.append(factor_stage((one,), n, request, seconds, (one.b, one.c, n)))
    return stages

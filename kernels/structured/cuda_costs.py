"""Predicted stages of products by factors on a GPU, and their prices: GEMMs, permutations, Triton tiles, launches."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..cuda.cost_model import UNALIGNED, CudaCostModel, row_multiple
from ..cuda.dtypes import itemsize
from ..dtypes import dtype_of
from ..measured import measured
from ..planning.machine import Machine
from ..planning.strategy import Stage
from ..precision import ACCURATE, TF32
from ..request import Request
from .block_low_rank import Blast, BlockLowRank
from .blocks import alternating_rows
from .chain import FactorChain
from .pattern import Pattern
from .rewrites import BY_HALVES, DENSE, WIDENED, rewritten_chain
from .split import TILES as SPLIT_TILES
from .split import split_seconds
from .strategy import STRIDED, TILED, TRANSPOSED, batch_first
from .tiles import tile_of
from .views import FactorStep, copied_ends, ends_of, steps_of

PRICES = measured("structured")
HOST, BLOCKS = measured("structured.host"), measured("structured.blocks")

TRANSPOSITION_SHARES: Mapping[int, float] = PRICES.transposition_shares
GATHER_SHARES: Mapping[str, tuple[float, float]] = PRICES.gather_shares
"""Fractions of the rates that our transposition and the gathering kernel reach, by bytes or dtype."""


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
    rates = PRICES.tile_rates.get(dtype, {}).get("several" if pattern.d > 1 else "one")
    if rates is None:
        return math.nan
    tile = tile_of(dtype, pattern, choice)
    share, columns = rates[min(choice, len(rates) - 1)]
    moved = ((pattern.rows + pattern.cols) * n + pattern.nonzeros) * itemsize(dtype)
    padded = tile.padded(pattern)
    work = padded + columns * padded / tile.sum_length(pattern)
    rate = share * costs.best_rate(TF32 if dtype == ACCURATE else dtype)
    # However few columns there are, a program multiplies a whole tile of them, which does not fill a multiprocessor.
    alone = 2 * work / tile.programs(pattern, 1) * tile.n * costs.units / (PRICES.lone_share * rate)
    return max(float(costs.combine(moved)) / PRICES.stream_share, 2 * work * n / rate, alone)


def gather_seconds(pattern: Pattern, n: int, dtype: str, costs: CudaCostModel) -> float:
    """Return the seconds of the gathering kernel; NaN if not measured."""
    dtype = strict(dtype)
    if dtype not in GATHER_SHARES:
        return math.nan
    of_traffic, of_rate = GATHER_SHARES[dtype]
    flops = 2.0 * dtype_of(dtype).parts ** 2 * pattern.nonzeros * n
    vendor = costs.best_rate("float64" if dtype in ("float64", "complex128") else "float32")
    moving = float(costs.combine(pattern.moved_elements(n) * itemsize(dtype)))
    return max(moving / of_traffic, flops / (of_rate * vendor))


def is_calibrated(dtype: str, costs: CudaCostModel) -> bool:
    """Return whether these prices apply: half precision, on a GPU whose multiprocessors and rates are known."""
    return dtype in ("bfloat16", "float16") and costs.units > 1 and costs.knows(dtype) and bool(costs.profile.bandwidth)


def moving_seconds(moved: float, in_cache: bool, costs: CudaCostModel) -> float:
    """Return the seconds in which so many bytes are moved."""
    return moved / ((costs.profile.bandwidth or math.inf) * (BLOCKS.in_cache if in_cache else 1.0))


def gemm_seconds(
    factor: Pattern, n: int, dtype: str, item: int, in_cache: bool, launches: int, costs: CudaCostModel
) -> float:
    """Return the seconds of one of the `launches` of a product by the vendor, single or batched."""
    if n <= BLOCKS.few_columns:
        return BLOCKS.replay / launches + _few_seconds(factor, item, costs)
    computing = _computing_seconds(factor, n, dtype, costs)
    moving = moving_seconds(factor.moved_elements(n) * item, in_cache, costs)
    return BLOCKS.start + max(computing, moving) + BLOCKS.exposed * min(computing, moving)


def _few_seconds(factor: Pattern, item: int, costs: CudaCostModel) -> float:
    share = BLOCKS.read_share if factor.blocks == 1 else BLOCKS.batched_read_share
    reading = factor.nonzeros * item / (share * (costs.profile.bandwidth or math.inf))
    if factor.blocks > 1:
        return BLOCKS.start + max(reading, factor.blocks * BLOCKS.small_product)
    return BLOCKS.start + reading + (BLOCKS.split_read if factor.b <= factor.c else 0.0)


def _computing_seconds(factor: Pattern, n: int, dtype: str, costs: CudaCostModel) -> float:
    """Return the seconds of whole waves of whole tiles, the sum over k split or not, whichever is faster."""
    units, k = costs.units, -(-factor.c // BLOCKS.step) * BLOCKS.step
    aligned = UNALIGNED[dtype].get(int(row_multiple(dtype, factor.c, BLOCKS.step)), 1.0)
    rate = BLOCKS.over_best * costs.best_rate(dtype) * aligned
    best = math.inf
    for rows, cols in BLOCKS.tiles:
        tiles = factor.blocks * math.ceil(factor.b / rows) * math.ceil(n / cols)
        each = 2.0 * rows * cols * k * units / rate  # seconds of a wave: units tiles at once
        best = min(best, each * math.ceil(tiles / units))
        parts = 2
        while tiles < BLOCKS.most_waves * units and factor.c >= parts * BLOCKS.least_part:
            best = min(best, BLOCKS.split_sum + each / parts * math.ceil(tiles * parts / units))
            parts *= 2
    return best


def view_stages(strategy: str, structure: FactorChain, request: Request, machine: Machine) -> list[Stage]:
    """Return the stages of GEMMs on views, by the factors or by rewritten ones, and of permuted or transposed ends.

    Factors are widened at every call.
    """
    original, structure = structure, rewritten_chain(structure, strategy)
    given = batch_first(request)
    ends = copied_ends(structure, *(given if strategy == TRANSPOSED else ends_of(structure, request.n, *given)))
    steps, stages, costs = steps_of(structure, *ends), [], CudaCostModel.of(machine)
    launches = sum(step.calls for step in steps)
    if strategy == WIDENED:
        copies = sum(one.d + 1 for one in original.patterns if one.d > 1)  # zeros, then the blocks of every diagonal
        moved = (structure.parameters + 2 * original.parameters) * request.itemsize
        stages.append(Stage("widening", 0, moved, costs.combine(moved) + copies * BLOCKS.start))
        launches += copies
    for step in steps:
        stages.append(_gemm_stage(step, request, costs, strategy == WIDENED))
        features = step.pattern.cols * (ends[0] and step is steps[0])
        features += step.pattern.rows * (ends[1] and step is steps[-1])
        if features and strategy != TRANSPOSED:
            moved = 2 * features * request.n * request.itemsize
            shares = PRICES.copy_shares[request.itemsize]
            share = shares[max(least for least in shares if least <= step.pattern.d)]
            stages.append(Stage("permutations", 0, moved, costs.combine(moved) / share))
            launches += 2
    if strategy == TRANSPOSED:
        stages.append(_transpositions(structure, *ends, request, costs))
        launches += sum(ends)
    return with_launches(stages, strategy, len(steps), launches)


def kernel_stages(
    strategy: str, structure: FactorChain, choice: int, request: Request, machine: Machine
) -> list[Stage]:
    """Return the stages of a launch a factor of our kernels, tiled (of this choice) or gathering."""
    costs, n, dtype = CudaCostModel.of(machine), request.n, request.arithmetic
    stages: list[Stage] = []
    for one in reversed(structure.patterns):
        is_tiled = strategy == TILED
        seconds = tile_seconds(one, n, dtype, choice, costs) if is_tiled else gather_seconds(one, n, dtype, costs)
        stages.append(factor_stage(one, request, seconds))
    return with_launches(stages, strategy, len(stages), len(stages))


def factor_stage(
    factor: Pattern, request: Request, seconds: float, product: tuple[int, int, int] | None = None
) -> Stage:
    """Return the stage of one factor; NaN seconds are unknown."""
    flops = 2.0 * dtype_of(request.dtype).parts ** 2 * factor.nonzeros * request.n
    return Stage(factor.label, flops, factor.moved_elements(request.n) * request.itemsize, seconds, product)


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
        streamed = float(costs.combine(given + wanted)) / PRICES.stream_share
        stages.append(Stage("halves and scales", 0, 3 * given + 2 * wanted, turned))
        flops, seconds = 2.0 * one.nonzeros * n, max(multiplied, streamed)
        stages.append(Stage(one.label, flops, given + wanted, seconds, (one.b, one.c, n)))
    factors = len(structure.patterns)
    return with_launches(stages, BY_HALVES, factors, HOST.split_launches * factors)


def with_launches(stages: list[Stage], strategy: str, factors: int, launches: int) -> list[Stage]:
    """Return the stages and one of the host's time that they do not hide, if their seconds are known."""
    known_seconds = [stage.seconds for stage in stages if stage.seconds is not None]
    shown = HOST.call + factors * HOST.views.get(strategy, 0.0) + launches * HOST.launch - sum(known_seconds)
    if len(known_seconds) < len(stages) or shown <= 0:
        return stages
    return [*stages, Stage("launches", 0, 0, shown)]


def _gemm_stage(step: FactorStep, request: Request, costs: CudaCostModel, widened: bool = False) -> Stage:
    """Return the stage of the batched GEMMs of one factor."""
    one, n, calls = step.pattern, request.n, step.calls
    seconds = calls * block_seconds(request.arithmetic, one.b, one.c, n, one.blocks // calls, costs)
    if widened:
        moving = float(costs.combine(one.moved_elements(n) * request.itemsize))
        seconds = max(seconds / PRICES.widened_gains.get(request.arithmetic, 1.0), moving)
    return factor_stage(one, request, seconds, (one.b, one.c, n))


def block_stages(strategy: str, structure: BlockLowRank, request: Request, machine: Machine) -> list[Stage]:
    """Return the stages of a low-rank, Monarch or BLAST product by GEMMs, or with one of our kernels.

    Without seconds where the strategy was not measured: tiled has a price for BLAST products of many columns, where
    the middle products by our kernel take what the copy of their operands takes. Uncalibrated dtypes are priced by
    measured rates and copies.
    """
    n, item, dtype, costs = request.n, request.itemsize, request.arithmetic, CudaCostModel.of(machine)
    factors = (Pattern(1, structure.rows, structure.cols, 1),) if strategy == DENSE else structure.patterns[::-1]
    priced = strategy in (STRIDED, DENSE) or (strategy == TILED and isinstance(structure, Blast) and n >= BLOCKS.many)
    whole, calibrated = item * sum(one.moved_elements(n) for one in factors), is_calibrated(dtype, costs)
    # All that is read and written is cached.
    hot = n > BLOCKS.few_columns and whole <= max(costs.profile.caches, default=0)
    stages = []
    for one in factors:
        size, mixed = one.moved_elements(n) * item, strategy == TILED and one is factors[1]
        if not priced:
            seconds = math.nan
        elif calibrated:
            by_vendor = gemm_seconds(one, n, dtype, item, hot, len(factors), costs)
            seconds = BLOCKS.start + moving_seconds(size, hot, costs) if mixed else by_vendor
        else:
            multiplying = 0.0 if mixed else block_seconds(dtype, one.b, one.c, n, one.blocks, costs)
            seconds = max(multiplying, float(costs.combine(size)))
        stages.append(factor_stage(one, request, seconds, (one.b, one.c, n)))
    return stages

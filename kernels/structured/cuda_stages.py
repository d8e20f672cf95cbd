"""The predicted stages of products by factors on a GPU, by strategy; the prices are those of `cuda_costs`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..cuda.cost_model import CudaCostModel
from ..dtypes import dtype_of
from ..planning.cost_model import seconds_or_none
from ..planning.machine import Machine
from ..planning.strategy import Stage
from ..request import Layout, Request
from .block_low_rank import Blast, BlockLowRank, Monarch
from .chain import FactorChain
from .cuda_costs import (
    FUSED_SHARES,
    GATHER_SHARES,
    HANDOVER_COLUMNS,
    START,
    STREAM_SHARE,
    TRANSPOSITION_SHARES,
    WIDENED_GAINS,
    block_seconds,
    copy_seconds,
    fits_cache,
    gemm_seconds,
    handover_seconds,
    host_seconds,
    is_calibrated,
    moving_seconds,
    permutation_seconds,
    scalar_seconds,
    tile_seconds,
    transposition_seconds,
)
from .pattern import Pattern
from .rewrites import DENSE, REWRITES, WIDENED, rewritten_chain
from .scalar import fused_places, gather_reason
from .split import TILES as SPLIT_TILES
from .split import split_seconds
from .strategy import FUSED, GATHER, STRIDED, TILED
from .transposition import TransposedProduct
from .views import FactorStep, copied_ends, steps_of

MANY = 512
"""Columns from which on tiled BLAST products have a price: measured from 1024 on, in each of 28 layers faster than
strided ones, by 1% to 150%."""

SPLIT_LAUNCHES = 4
"""Kernels of a factor by halves: the largest entries of columns, the halves, the product, the result."""


def costs_of(machine: Machine) -> CudaCostModel:
    """Return the cost model of a GPU."""
    assert isinstance(machine.costs, CudaCostModel)
    return machine.costs


def launched(strategy: str, patterns: Sequence[Pattern], request: Request) -> Sequence[tuple[int, ...]]:
    """Return the factors of every launch of a kernel, right-most first."""
    if strategy == FUSED:
        return fused_places(patterns, request.n, request.arithmetic)
    return [(place,) for place in reversed(range(len(patterns)))]


def view_stages(strategy: str, structure: FactorChain, request: Request, machine: Machine) -> list[Stage]:
    """Return the stages of GEMMs on views, by the factors or by rewritten ones, and of permuted ends."""
    structure = rewritten_chain(structure, strategy) if strategy in REWRITES else structure
    ends = copied_ends(structure, *(layout is Layout.COLUMNS for layout in request.layouts[1:]))
    steps, stages, costs = steps_of(structure, *ends), [], costs_of(machine)
    for step in steps:
        stages.append(_gemm_stage(step, request, costs, strategy == WIDENED))
        turned = step.pattern.cols * (ends[0] and step is steps[0]) + step.pattern.rows * (
            ends[1] and step is steps[-1]
        )
        if turned:
            seconds = permutation_seconds(step.pattern, turned * request.n, request.itemsize, costs)
            moved = 2 * turned * request.n * request.itemsize
            stages.append(Stage("permutations", 0, moved, seconds_or_none(seconds)))
    copies = 2 * sum(stage.name == "permutations" for stage in stages)
    return with_launches(stages, strategy, len(steps), sum(step.calls for step in steps) + copies)


def kernel_stages(
    strategy: str, structure: FactorChain, choice: int, request: Request, machine: Machine
) -> list[Stage]:
    """Return the stages of launches of our kernels; a factor that none multiplies runs by GEMMs on views."""
    patterns, costs, n, dtype = structure.patterns, costs_of(machine), request.n, request.arithmetic
    stages: list[Stage] = []
    for places in launched(strategy, patterns, request):
        some = [patterns[place] for place in places]
        if strategy == TILED:
            seconds = tile_seconds(some[0], n, dtype, choice, costs)
        elif len(some) == 2:
            seconds = scalar_seconds(some, n, dtype, FUSED_SHARES, costs)
        elif strategy == GATHER or gather_reason(some, n, dtype) is None:
            seconds = scalar_seconds(some, n, dtype, GATHER_SHARES, costs)
        else:
            single = structure.singles[places[0]]
            stages.append(_gemm_stage(steps_of(single)[0], request, costs, False))
            continue
        parameters = sum(one.nonzeros for one in some)
        moved = ((some[0].rows + some[-1].cols) * n + parameters) * request.itemsize
        flops = 2.0 * dtype_of(dtype).parts ** 2 * parameters * n
        stages.append(Stage(" * ".join(one.label for one in some), flops, moved, seconds_or_none(seconds)))
    return with_launches(stages, strategy, len(patterns), len(patterns))


def transposed_stages(product: TransposedProduct, request: Request, machine: Machine) -> list[Stage]:
    """Return the stages of the transpositions and the factors between them, without traffic within the cache."""
    item, n, costs = request.itemsize, request.n, costs_of(machine)
    slabs, width = -(-n // product.slab), min(product.slab, n)
    stages = []
    for step in product.steps:
        one = _gemm_stage(step, request, costs, False, width)
        seconds = None if one.seconds is None else slabs * one.seconds
        stages.append(Stage(one.name, slabs * one.flops, slabs * one.bytes, seconds, one.product))
    cache = machine.profile.caches[-1] if machine.profile.caches else 0
    passes = 1 if product.workspace(n, item) <= cache else 2
    patterns = product.structure.patterns
    moved = passes * (patterns[-1].cols * product.first + patterns[0].rows * product.last) * n * item
    kernels = slabs * (product.first + product.last)
    stages.append(
        Stage("transpositions", 0, moved, seconds_or_none(transposition_seconds(moved, kernels, item, costs)))
    )
    launches = kernels + slabs * sum(step.calls for step in product.steps)
    return with_launches(stages, STRIDED, slabs * len(patterns), launches)


def split_stages(strategy: str, structure: FactorChain, request: Request, machine: Machine) -> list[Stage]:
    """Return the stages of products by halves; prices are those of dense ones and of our transpositions."""
    stages, costs, n = [], costs_of(machine), request.n
    for one in reversed(structure.patterns):
        given, wanted = 4 * one.cols * n, 4 * one.rows * n
        turned = float(costs.combine(3 * given) + costs.combine(2 * wanted)) / TRANSPOSITION_SHARES[4]
        multiplied = min(split_seconds(one, n, *tile) for tile in SPLIT_TILES)
        streamed = float(costs.combine(given + wanted)) / STREAM_SHARE
        stages.append(Stage("halves and scales", 0, 3 * given + 2 * wanted, turned))
        flops, seconds = 2.0 * one.nonzeros * n, max(multiplied, streamed)
        stages.append(Stage(one.label, flops, given + wanted, seconds, (one.b, one.c, n)))
    factors = len(structure.patterns)
    return with_launches(stages, strategy, factors, SPLIT_LAUNCHES * factors)


def with_launches(stages: list[Stage], strategy: str, factors: int, launches: int) -> list[Stage]:
    """Return the stages and one of the host's time that they do not hide, if their seconds are known."""
    known_seconds = [stage.seconds for stage in stages if stage.seconds is not None]
    shown = host_seconds(strategy, factors, launches) - sum(known_seconds)
    if len(known_seconds) < len(stages) or shown <= 0:
        return stages
    return [*stages, Stage("launches", 0, 0, shown)]


def _gemm_stage(step: FactorStep, request: Request, costs: CudaCostModel, widened: bool, n: int | None = None) -> Stage:
    """Return the stage of the batched GEMMs of one factor for n columns."""
    one, n, calls = step.pattern, request.n if n is None else n, step.calls
    moved = one.moved_elements(n) * request.itemsize
    flops = 2.0 * dtype_of(request.dtype).parts ** 2 * one.nonzeros * n
    seconds = calls * block_seconds(request.arithmetic, one.b, one.c, n, one.blocks // calls, costs)
    if widened:
        seconds = max(seconds / WIDENED_GAINS.get(request.arithmetic, 1.0), float(costs.combine(moved)))
    return Stage(one.label, flops, moved, seconds_or_none(seconds), (one.b, one.c, n))


def block_stages(strategy: str, structure: BlockLowRank, request: Request, machine: Machine) -> list[Stage]:
    """Return the stages of a low-rank, Monarch or BLAST product by GEMMs, or with one of our kernels.

    Without seconds where the strategy was not measured: tiled has a price for BLAST products of many columns and for
    Monarch ones of one or two.
    """
    n, item, costs = request.n, request.itemsize, costs_of(machine)
    dense = (Pattern(1, structure.rows, structure.cols, 1),)
    factors = dense if strategy == DENSE else structure.patterns[::-1]
    priced = strategy in (STRIDED, DENSE)
    if strategy == TILED:
        priced = n >= MANY if isinstance(structure, Blast) else n <= HANDOVER_COLUMNS and isinstance(structure, Monarch)
    stages = []
    for one in factors:
        seconds = seconds_or_none(_block_seconds(strategy, one, factors, structure, request, costs)) if priced else None
        parts = dtype_of(request.dtype).parts ** 2
        moved = one.moved_elements(n) * item
        stages.append(Stage(one.label, 2.0 * parts * one.nonzeros * n, moved, seconds, (one.b, one.c, n)))
    size = factors[0].nonzeros * item
    if strategy == TILED and isinstance(structure, Monarch) and size > request.max_extra_bytes:
        relaying = START + moving_seconds(2 * size, False, costs) if is_calibrated(request.arithmetic, costs) else None
        stages.insert(0, Stage("V re-laid out", 0, 2 * size, relaying))
    return stages


def _block_seconds(
    strategy: str,
    one: Pattern,
    factors: Sequence[Pattern],
    structure: BlockLowRank,
    request: Request,
    costs: CudaCostModel,
) -> float:
    """Return the seconds of one factor; NaN if unknown. Uncalibrated dtypes are priced by measured rates and copies.

    BLAST's middle products by our kernel take what the copy of their operands takes.
    """
    n, item, calibrated = request.n, request.itemsize, is_calibrated(request.arithmetic, costs)
    if strategy == TILED and isinstance(structure, Monarch):
        return handover_seconds(one, one is factors[0], item, costs) if calibrated else math.nan
    moving = float(costs.combine(one.moved_elements(n) * item))
    hot = fits_cache(factors, n, item, costs)
    if strategy == TILED and one is factors[1]:
        return copy_seconds(one, n, item, hot, costs) if calibrated else moving
    if calibrated:
        return gemm_seconds(one, n, request.arithmetic, item, hot, len(factors), costs)
    return max(block_seconds(request.arithmetic, one.b, one.c, n, one.blocks, costs), moving)

"""Predicted seconds of the steps of block low-rank products on a GPU, as CUDA graphs replay them.

Constants were fitted to `docs/results/blr-cuda.jsonl`: 16 layers in bfloat16 on an H200 with torch 2.11, by
`lcma bench blr`; tests/kernels/block_low_rank/test_replay.py compares predicted and measured seconds. Rates, bandwidth,
multiprocessors and cache are the profile's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..cuda.cost_model import UNALIGNED, CudaCostModel, row_multiple
from .steps import FactorStep
from .steps_strategy import moved_elements

FEW_COLUMNS = 16
"""Up to so many columns a step is a read of its weights, which were not in the cache."""

LARGE_TILES = (128, 256), (256, 128), (128, 192), (192, 128), (128, 128)
TILES = *LARGE_TILES, (64, 256), (256, 64), (64, 128), (128, 64), (64, 64)
"""Rows and columns of the vendor's tiles; K_TILE is their step over the sum."""

K_TILE = 64

START, SPLIT = 3.4e-6, 1.3e-6
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


HANDOVER_COLUMNS = 2
"""Up to so many columns Monarch's tiled products have a price: measured at one column, which takes as long as two."""

HANDOVER_K_TILE, HANDOVER_SECOND = 0.68e-6, 1e-6
"""Monarch's tiled products of few columns: seconds of a step over p in the first kernel, of which few programs wait for
each, and of the second product beside the reads of its weights."""


def is_calibrated(dtype: str, costs: CudaCostModel) -> bool:
    """Return whether these prices apply: half precision, on a GPU whose multiprocessors and rates are known."""
    return dtype in ("bfloat16", "float16") and costs.units > 1 and costs.knows(dtype) and bool(costs.profile.bandwidth)


def working_set(steps: Sequence[FactorStep], n: int, item: int) -> int:
    """Return the bytes that the steps of a product read and write."""
    return item * sum(moved_elements(step, n) for step in steps)


def moving_seconds(moved: float, in_cache: bool, costs: CudaCostModel) -> float:
    """Return the seconds in which so many bytes are moved."""
    return moved / ((costs.profile.bandwidth or math.inf) * (IN_CACHE if in_cache else 1.0))


def gemm_seconds(
    step: FactorStep, n: int, dtype: str, item: int, in_cache: bool, launches: int, costs: CudaCostModel
) -> float:
    """Return the seconds of one of the `launches` of a product by the vendor, single or batched."""
    if n <= FEW_COLUMNS:
        return REPLAY / launches + _few_seconds(step, item, costs)
    computing = _computing_seconds(step, n, dtype, costs)
    moving = moving_seconds(moved_elements(step, n) * item, in_cache, costs)
    return START + max(computing, moving) + EXPOSED * min(computing, moving)


def copy_seconds(step: FactorStep, n: int, item: int, in_cache: bool, costs: CudaCostModel) -> float:
    """Return the seconds of a step that is bound by memory."""
    return START + moving_seconds(moved_elements(step, n) * item, in_cache, costs)


def handover_seconds(step: FactorStep, first: bool, item: int, costs: CudaCostModel) -> float:
    """Return the seconds of the first or the second product of a Monarch matrix by the tiled strategy, few columns."""
    reading = step.parameters * item / (READ_SHARE * (costs.profile.bandwidth or math.inf))
    waiting = HANDOVER_K_TILE * math.ceil(step.k / K_TILE)
    return REPLAY / 2 + START + (max(reading, waiting) if first else HANDOVER_SECOND + reading)


def fits_cache(steps: Sequence[FactorStep], n: int, item: int, costs: CudaCostModel) -> bool:
    """Return whether all that a product of many columns reads and writes fits in the last cache."""
    return n > FEW_COLUMNS and working_set(steps, n, item) <= max(costs.profile.caches, default=0)


def _few_seconds(step: FactorStep, item: int, costs: CudaCostModel) -> float:
    share = READ_SHARE if step.count == 1 else BATCHED_READ_SHARE
    reading = step.parameters * item / (share * (costs.profile.bandwidth or math.inf))
    if step.count > 1:
        return START + max(reading, step.count * SMALL_PRODUCT)
    return START + reading + (SPLIT_READ if step.m <= step.k else 0.0)


def _computing_seconds(step: FactorStep, n: int, dtype: str, costs: CudaCostModel) -> float:
    """Return the seconds of whole waves of whole tiles, the sum over k split or not, whichever is faster."""
    units, k = costs.units, -(-step.k // K_TILE) * K_TILE
    rate = OVER_BEST * costs.best_rate(dtype) * UNALIGNED[dtype].get(int(row_multiple(dtype, step.k, K_TILE)), 1.0)
    best = math.inf
    for rows, cols in TILES:
        tiles = step.count * math.ceil(step.m / rows) * math.ceil(n / cols)
        each = 2.0 * rows * cols * k * units / rate  # seconds of a wave: units tiles at once
        best = min(best, each * math.ceil(tiles / units))
        parts = 2
        while tiles < MOST_WAVES * units and step.k >= parts * LEAST_PART:
            best = min(best, SPLIT + each / parts * math.ceil(tiles * parts / units))
            parts *= 2
    return best

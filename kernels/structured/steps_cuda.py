"""Strategies for block low-rank products on a GPU: batched GEMMs on views, and our Triton kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ..cuda.cost_model import CudaCostModel
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Parameters, Stage
from ..request import Layout, Request
from .block_low_rank import Blast, Monarch
from .decode import DECODE_TILES, MOST_COLUMNS, DecodeTile, decode_seconds, multiply_few
from .executor import StructuredExecutor
from .rewrites import DENSE
from .steps import FactorStep, steps_of
from .steps_costs import (
    HANDOVER_COLUMNS,
    START,
    copy_seconds,
    fits_cache,
    gemm_seconds,
    handover_seconds,
    is_calibrated,
    moving_seconds,
)
from .steps_strategy import STRIDED, BlockLowRankStrategy, moved_elements, structure_in
from .steps_tensors import (
    expanded,
    multiply_dense,
    multiply_strided,
    multiply_tiled,
    relaid,
    tiled_reason,
    triton_reason,
)
from .strategy import known

TILED, DECODE = "tiled", "decode"

DTYPES = ("float16", "bfloat16", "tf32", "float32", "float64")

PRODUCTS: dict[str, Callable[..., None]] = {
    STRIDED: multiply_strided,
    DENSE: multiply_dense,
    TILED: multiply_tiled,
    DECODE: multiply_few,
}

REWRITES = {DENSE: expanded, TILED: relaid}


MANY = 512
"""Columns from which on tiled BLAST products have a price: measured from 1024 on, in each of 28 layers faster than
strided ones, by 1% to 150%."""

DECODE_SIZES = "ahead", "programs", "warps", "weights"
"""The fields of a `DecodeTile` that are parameters of a candidate, sorted."""


@dataclass(frozen=True)
class CudaBlockLowRank(BlockLowRankStrategy):
    """A strategy for block low-rank products on a GPU.

    - strided: two or three of the vendor's batched GEMMs on views, the batch last between them; the baseline.
    - tiled: the same with our kernel for Monarch's first products (stored as the second ones read them) or for BLAST's
      middle ones (on tensor cores).
    - decode: products of up to 16 columns by one launch that reads every weight once.
    - dense: the whole matrix, within `max_extra_bytes`.

    These have a price: strided and dense, tiled for BLAST products of many columns and Monarch ones of one or two, and
    decode for one or two columns in half precision. The others run where they are named, or where `lcma tune` found
    them fastest.
    """

    device: str = "cuda"

    @property
    def settings(self) -> Sequence[Parameters]:
        """See `BlockLowRankStrategy`: the tiles of decode."""
        if self.name != DECODE:
            return ((),)
        return [tuple((name, getattr(tile, name)) for name in DECODE_SIZES) for tile in DECODE_TILES]

    def device_reason(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        """See `StructuredStrategy`."""
        structure = structure_in(request)
        if request.dtype not in DTYPES:
            return f"{request.dtype} is not multiplied by block low-rank factors; choose one of {', '.join(DTYPES)}"
        if self.name == TILED:
            first = request.layouts[1] is Layout.COLUMNS or request.n == 1
            return tiled_reason(structure, request.dtype, first)
        if self.name == DECODE:
            if request.n > MOST_COLUMNS:
                return f"the kernel takes up to {MOST_COLUMNS} columns, not {request.n}"
            if request.dtype == "float64":
                return "the kernel sums in float32; choose strided"
            return triton_reason()
        return None

    def is_priced(self, request: Request) -> bool:
        """See `BlockLowRankStrategy`; tiled where it was measured: BLAST of many columns, Monarch of one and two."""
        if self.name != TILED:
            return super().is_priced(request)
        if isinstance(structure_in(request), Blast):
            return request.n >= MANY
        return request.n <= HANDOVER_COLUMNS

    def step_seconds(self, step: FactorStep, request: Request, machine: Machine) -> float:
        """See `BlockLowRankStrategy`; the prices of `cuda_costs` where they apply, else of measured rates and copies.

        BLAST's middle products by our kernel take what the copy of their operands takes.
        """
        costs, structure, n, item = machine.costs, structure_in(request), request.n, request.itemsize
        assert isinstance(costs, CudaCostModel)
        steps = (step,) if self.name == DENSE else steps_of(structure)
        mixing = self.name == TILED and isinstance(structure, Blast) and step == steps[1]
        if self.name == TILED and isinstance(structure, Monarch):
            if not is_calibrated(request.dtype, costs):
                return math.nan
            return handover_seconds(step, step == steps[0], item, costs)
        if not mixing:
            return self._gemm_seconds(step, steps, request, costs)
        if is_calibrated(request.dtype, costs):
            return copy_seconds(step, n, item, fits_cache(steps, n, item, costs), costs)
        return float(costs.combine(moved_elements(step, n) * item))

    def _gemm_seconds(
        self, step: FactorStep, steps: Sequence[FactorStep], request: Request, costs: CudaCostModel
    ) -> float:
        """Return the seconds of one of the steps by the vendor's GEMM."""
        n, item = request.n, request.itemsize
        if is_calibrated(request.dtype, costs):
            hot = fits_cache(steps, n, item, costs)
            return gemm_seconds(step, n, request.dtype, item, hot, len(steps), costs)
        mode = "whole" if step.count == 1 else "batched"
        computing = float(costs.gemm(request.dtype, step.m, step.k, n, step.count, mode))
        return max(computing, float(costs.combine(moved_elements(step, n) * item)))

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`; decode's one stage is all steps, and only its first tile was measured."""
        stages = super().predict(candidate, request, machine)
        if self.name == TILED and stages and isinstance(structure := structure_in(request), Monarch):
            return [*self._relaying(structure, request, machine), *stages]
        if self.name != DECODE or not stages:
            return stages
        structure = structure_in(request)
        measured = candidate.parameters == self.settings[0]
        bandwidth = machine.profile.bandwidth if measured else None
        seconds = decode_seconds(structure, request.n, request.itemsize, bandwidth)
        moved = (structure.parameters + (structure.rows + structure.cols) * request.n) * request.itemsize
        return [Stage("one launch", sum(one.flops for one in stages), moved, known(seconds))]

    def _relaying(self, structure: Monarch, request: Request, machine: Machine) -> list[Stage]:
        """Return the stage that re-lays out V at every call; none if the request allows the bytes to do so once."""
        size = steps_of(structure)[0].parameters * request.itemsize
        if size <= request.max_extra_bytes:
            return []
        costs = machine.costs
        assert isinstance(costs, CudaCostModel)
        seconds = START + moving_seconds(2 * size, False, costs) if is_calibrated(request.dtype, costs) else None
        return [Stage("V re-laid out", 0, 2 * size, seconds)]

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`."""
        structure = structure_in(request)
        rewrite = partial(REWRITES[self.name], structure) if self.name in REWRITES else None
        held = self.workspace(candidate, request, machine)
        product = partial(PRODUCTS[self.name], structure)
        if self.name == DECODE:
            product = partial(product, tile=decode_tile(candidate.parameters))
        return StructuredExecutor(request, structure, product, held, rewrite)


def decode_tile(parameters: Parameters) -> DecodeTile:
    """Return the tile of a candidate of decode."""
    ahead, programs, warps, weights = (int(dict(parameters)[name]) for name in DECODE_SIZES)
    return DecodeTile(programs, warps, weights, ahead)

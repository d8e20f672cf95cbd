"""Strategies for block low-rank products on a GPU: batched GEMMs on views, our Triton kernels, the papers' form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..cuda.cost_model import CudaCostModel
from ..cuda.executor import layout_of
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Parameters
from ..request import Layout, Request
from .decode import DECODE_TILES, MOST_COLUMNS, DecodeTile, multiply_few
from .executor import BlockLowRankExecutor
from .steps import Step
from .strategy import DENSE, PERMUTED, STRIDED, BlockLowRankStrategy, moved_elements, structure_in
from .structure import BlockLowRank
from .tensors import (
    expanded,
    fused_reason,
    multiply_dense,
    multiply_fused,
    multiply_partial,
    multiply_permuted_tensors,
    multiply_strided,
    multiply_tiled,
    partial_reason,
    relaid,
    tiled_reason,
    triton_reason,
)

TILED, DECODE, FUSED, PARTIAL = "tiled", "decode", "fused", "partial"

DTYPES = ("float16", "bfloat16", "tf32", "float32", "float64")

PRODUCTS = {
    STRIDED: multiply_strided,
    PERMUTED: multiply_permuted_tensors,
    DENSE: multiply_dense,
    TILED: multiply_tiled,
    DECODE: multiply_few,
    FUSED: multiply_fused,
    PARTIAL: multiply_partial,
}

REWRITES = {DENSE: expanded, TILED: relaid}


DECODE_SIZES = "ahead", "programs", "warps", "weights"
"""The fields of a `DecodeTile` that are parameters of a candidate, sorted."""


@dataclass(frozen=True)
class CudaBlockLowRank(BlockLowRankStrategy):
    """A strategy for block low-rank products on a GPU.

    - strided: two or three of the vendor's batched GEMMs on views, the batch last between them; the baseline.
    - tiled: the same with our kernel for Monarch's first products (stored as the second ones read them) or for BLAST's
      middle ones (on tensor cores).
    - fused: a low-rank product of rank up to 128 by one kernel.
    - partial: BLAST's first two products by one kernel, the papers' partial fusion.
    - decode: products of up to 16 columns by one launch that reads every weight once.
    - dense: the whole matrix, within `max_extra_bytes`; permuted: the papers' GEMMs between permutations.

    tiled, fused, partial, decode and permuted have no price: they run if they are named, or if `lcma tune` found
    them fastest.
    """

    device: str = "cuda"

    @property
    def settings(self) -> Sequence[Parameters]:
        """See `BlockLowRankStrategy`: the tiles of decode."""
        if self.name != DECODE:
            return ((),)
        return [tuple((name, getattr(tile, name)) for name in DECODE_SIZES) for tile in DECODE_TILES]

    def device_reason(self, structure: BlockLowRank, request: Request, machine: Machine) -> str | None:
        """See `BlockLowRankStrategy`."""
        if request.dtype not in DTYPES:
            return f"{request.dtype} is not multiplied by block low-rank factors; choose one of {', '.join(DTYPES)}"
        first, last = (layout is Layout.COLUMNS or request.n == 1 for layout in request.layouts[1:])
        if self.name == TILED:
            return tiled_reason(structure, request.dtype, first)
        if self.name == FUSED:
            return fused_reason(structure, request.dtype, first, last)
        if self.name == PARTIAL:
            return partial_reason(structure, request.dtype)
        if self.name == DECODE:
            if request.n > MOST_COLUMNS:
                return f"the kernel takes up to {MOST_COLUMNS} columns, not {request.n}"
            if request.dtype == "float64":
                return "the kernel sums in float32; choose strided"
            return triton_reason()
        return None

    def step_seconds(self, step: Step, request: Request, machine: Machine) -> float:
        """See `BlockLowRankStrategy`: a GEMM of measured rate, or a copy of its operands and result."""
        costs = machine.costs
        assert isinstance(costs, CudaCostModel)
        mode = "whole" if step.count == 1 else "batched"
        seconds = float(costs.gemm(request.dtype, step.m, step.k, request.n, step.count, mode))
        return max(seconds, float(costs.combine(moved_elements(step, request.n) * request.itemsize)))

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`."""
        structure = structure_in(request)
        rewrite = partial(REWRITES[self.name], structure) if self.name in REWRITES else None
        held = self.workspace(candidate, request, machine)
        product = partial(PRODUCTS[self.name], structure)
        if self.name == DECODE:
            product = partial(product, tile=decode_tile(candidate.parameters))
        return BlockLowRankExecutor(request, structure, product, _empty, layout_of, _overlap, held, rewrite)


def decode_tile(parameters: Parameters) -> DecodeTile:
    """Return the tile of a candidate of decode."""
    ahead, programs, warps, weights = (int(dict(parameters)[name]) for name in DECODE_SIZES)
    return DecodeTile(programs, warps, weights, ahead)


def _empty(request: Request, like: Any) -> Any:
    if request.layouts[2] is Layout.COLUMNS:
        return like.new_empty((request.n, request.m)).T
    return like.new_empty((request.m, request.n))


def _overlap(x: Any, y: Any) -> bool:
    return bool(x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr())

"""Strategies for products by factors on a GPU: the vendor's batched GEMMs on views, and our Triton kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..dtypes import dtype_of
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Parameters, Stage
from ..request import Request
from .block_low_rank import Blast, BlockLowRank, block_low_rank_of
from .chain import FactorChain
from .cuda_costs import block_stages, kernel_stages, split_stages, view_stages
from .decode import DECODE_TILES, MOST_COLUMNS, DecodeTile, multiply_few
from .decode import PRICES as DECODE_PRICES
from .executor import Product
from .mixing import mixing_reason, multiply_mixed
from .rewrites import BY_HALVES, DENSE, WIDENED, rewritten_bytes, rewritten_chain
from .split import multiply_split, split_reason
from .strategy import (
    DECODE,
    GATHER,
    NATURAL_ONLY,
    STRIDED,
    TILED,
    TRANSPOSED,
    StructuredStrategy,
    batch_first,
    chain_in,
)
from .tiles import (
    TILES,
    factor_by_factor,
    gather_reason,
    multiply_small,
    multiply_tiled,
    tile_choices,
    tile_of,
    tiled_reason,
    triton_reason,
)
from .transposition import multiply_transposed, transposed_reason
from .views import buffer_rows, ends_of, padded, view_chain

REASONS = {GATHER: gather_reason, BY_HALVES: split_reason}
"""The reasons by strategy why a kernel does not multiply patterns, for n columns of a dtype."""


@dataclass(frozen=True)
class CudaStructured(StructuredStrategy):
    """A strategy for products by factors on a GPU.

    - strided: a batched GEMM a factor on views, batch-last between factors; features of a batch-first end whose blocks
      have rows apart are permuted. The baseline.
    - tiled: our Triton kernels, for any strides; designed for batch-first operands with d > 1. Of BLAST
      matrices the middle products, between GEMMs on views.
    - gather: our Triton kernel for small blocks, real or complex, without tensor cores.
    - transposed: strided between transpositions of batch-first ends by a Triton kernel.
    - widened: strided by (a, bd, cd, 1): d times the multiplications, no transposition.
    - split: float32 by halves of float16, for the precision fp32-accurate: X is split in gathered blocks.
    - decode: products of low-rank, Monarch and BLAST chains with few columns by one launch that reads weights once.
    - dense: the whole matrix, within `max_extra_bytes`.

    Low-rank, Monarch and BLAST matrices were measured with strided, tiled, decode and dense only: other strategies have
    no price for them, and run where they are named or where `lcma tune` found them fastest.
    """

    def settings(self, request: Request) -> Iterable[Parameters]:
        """See `StructuredStrategy`: tiles of decode and, if distinct, of tiled."""
        structure = chain_in(request)
        if self.name == DECODE:
            return [tile.parameters for tile in DECODE_TILES]
        if self.name != TILED or request.arithmetic not in TILES or isinstance(structure, Blast):
            return ((),)
        found: dict[Any, Parameters] = {}
        for choice in range(tile_choices(request.arithmetic)):
            tiles = tuple(tile_of(request.arithmetic, one, choice) for one in structure.patterns)
            found.setdefault(tiles, (("tile", choice),))
        return found.values()

    def device_reason(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        structure, n, dtype = chain_in(request), request.n, request.arithmetic
        if self.name == TRANSPOSED:
            return transposed_reason(structure, *batch_first(request))
        if self.name == DECODE:
            return _decode_reason(structure, n, dtype)
        if self.name == TILED and isinstance(structure, Blast):
            return mixing_reason(structure, dtype)
        if structure.is_blocked and self.name not in (STRIDED, DENSE):
            return NATURAL_ONLY
        if self.name == TILED:
            return tiled_reason(structure.patterns, n, dtype, _choice(candidate))
        return REASONS[self.name](structure.patterns, n, dtype) if self.name in REASONS else None

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        structure = chain_in(request)
        if self.name == DECODE:
            return _decode_stages(candidate, structure, request, machine)
        if isinstance(structure, BlockLowRank):
            return block_stages(self.name, structure, request, machine)
        if self.name in (TILED, GATHER):
            return kernel_stages(self.name, structure, _choice(candidate), request, machine)
        if self.name == BY_HALVES:
            return split_stages(structure, request, machine)
        return view_stages(self.name, structure, request, machine)

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: an upper bound of the memory that torch allocates."""
        if 0 in request.shape:
            return 0
        n, structure = request.n, chain_in(request)
        chain, held = rewritten_chain(structure, self.name), rewritten_bytes(structure, self.name, request.itemsize)
        patterns = chain.patterns
        if self.name == BY_HALVES:  # X in halves, the product, and results between factors
            elements = max(one.rows + one.cols for one in patterns) + sum(one.rows for one in patterns[1:])
            return held + 4 * (elements * n + 8 * elements)
        ends = batch_first(request) if self.name in (STRIDED, WIDENED, TRANSPOSED) else (False, False)
        ends = ends if self.name == TRANSPOSED else ends_of(chain, n, *ends)
        return held + sum(buffer_rows(chain, *ends)) * padded(n) * request.itemsize

    def product(self, candidate: Candidate, request: Request, machine: Machine) -> Product:
        structure, dtype = chain_in(request), request.arithmetic
        if self.name == TRANSPOSED:
            return partial(multiply_transposed, view_chain(structure, *batch_first(request)))
        if self.name == DECODE and (known := _decoded(structure)) is not None:
            sizes: Any = dict(candidate.parameters)
            return partial(multiply_few, known, tile=DecodeTile(**sizes))
        if self.name == TILED and isinstance(structure, Blast):
            return partial(multiply_mixed, structure)
        patterns = structure.patterns
        if self.name == TILED:
            return partial(factor_by_factor, partial(_tiled, dtype, _choice(candidate)), patterns)
        if self.name in (GATHER, BY_HALVES):
            return partial(factor_by_factor, multiply_small if self.name == GATHER else multiply_split, patterns)
        chain = rewritten_chain(structure, self.name)
        return view_chain(chain, *ends_of(chain, request.n, *batch_first(request))).run


def _decoded(structure: FactorChain) -> BlockLowRank | None:
    """Return the low-rank, Monarch or BLAST structure of a chain, whose parameters lie in memory as the chain's do."""
    return structure if isinstance(structure, BlockLowRank) else block_low_rank_of(structure.patterns)


def _decode_reason(structure: FactorChain, n: int, dtype: str) -> str | None:
    if _decoded(structure) is None:
        return "the kernel multiplies low-rank, Monarch and BLAST chains; choose strided"
    if n > MOST_COLUMNS:
        return f"the kernel takes up to {MOST_COLUMNS} columns, not {n}; choose strided"
    if dtype == "float64" or dtype_of(dtype).parts > 1:
        return "the kernel sums in float32; choose strided"
    return triton_reason()


def _decode_stages(candidate: Candidate, structure: FactorChain, request: Request, machine: Machine) -> list[Stage]:
    """Return one stage for all factors; only the first tile was measured."""
    measured = candidate.parameters == DECODE_TILES[0].parameters
    n, bandwidth, seconds = request.n, machine.profile.bandwidth if measured else None, None
    if bandwidth is not None and n in DECODE_PRICES.read and request.itemsize == 2:
        rate = DECODE_PRICES.read_rate * bandwidth
        seconds = DECODE_PRICES.start + DECODE_PRICES.read[n] * structure.parameters * request.itemsize / rate
    moved = (structure.parameters + (structure.rows + structure.cols) * n) * request.itemsize
    return [Stage("one launch", float(structure.flops(n)), moved, seconds)]


def _tiled(dtype: str, tile: int, weights: Any, pattern: Any, x: Any, out: Any) -> None:
    multiply_tiled(weights, pattern, x, out, dtype, tile_of(dtype, pattern, tile))


def _choice(candidate: Candidate) -> int:
    return int(dict(candidate.parameters).get("tile", 0))


STRATEGIES = (
    CudaStructured("strided", baseline=True),
    *map(CudaStructured, ("tiled", "gather", "transposed", "widened", "split", "dense", "decode")),
)

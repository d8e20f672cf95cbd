"""Strategies for Kronecker-sparse products on a GPU: batched GEMMs on views, Triton kernels, the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..cuda.cost_model import CudaCostModel
from ..cuda.dtypes import itemsize
from ..dtypes import dtype_of
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Stage
from ..request import Layout, Request
from .cuda_costs import (
    FUSED_SHARES,
    GATHER_SHARES,
    SHOWN,
    WIDENED_GAINS,
    block_seconds,
    host_seconds,
    permutation_seconds,
    scalar_seconds,
    tile_seconds,
    transposition_seconds,
)
from .executor import Product, StructuredExecutor
from .factor_products import FUSED, GATHER, STRIDED, TILED, TRANSPOSED, product_of
from .fused import FusedChain, fused_places, fused_reason
from .gather import gather_reason
from .pattern import Pattern
from .rewrites import DENSE, REWRITES, WIDENED, rewritten, rewritten_bytes, rewritten_patterns
from .strategy import FAMILY, StructuredStrategy, chain_in, known
from .tiles import TILES, tile_choices, tile_of, tiled_reason
from .transposition import BOUNDED, WHOLE, TransposedProduct, transposed_product, transposed_reason

KERNELS = (TILED, GATHER, FUSED)
"""The strategies that run a factor by one launch of a Triton kernel."""


@dataclass(frozen=True)
class CudaKronecker(StructuredStrategy):
    """A strategy for products by Kronecker-sparse factors on a GPU, one after the other, batch-last between.

    - strided: min(a, d) batched GEMMs on views; features of a batch-first end with d > 1 are permuted first.
    - tiled: our Triton kernels, for any strides; designed for batch-first operands with d > 1.
    - gather: our Triton kernel for small blocks, real or complex, without tensor cores.
    - fused: neighbours of a chain with small blocks by one kernel per pair, the others gathered or on views.
    - transposed: strided between transpositions of batch-first ends by a Triton kernel, by slabs of the batch.
    - widened: strided by (a, bd, cd, 1): d times the multiplications, no transposition.
    - dense: the whole matrix, within `max_extra_bytes`.
    - bmm: copies that gather blocks, a batched GEMM, copies back: the baseline.
    """

    name: str
    baseline: bool = False
    family: str = FAMILY
    version: int = 1
    device: str = "cuda"

    @property
    def on_views(self) -> bool:
        """Whether the product is the vendor's alone, on views: a learner tries it without waiting for a compiler."""
        return self.name == STRIDED

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """See `StructuredStrategy`: one; for tiled one per distinct tile, for transposed one per slab."""
        if self.name == TRANSPOSED:
            for slab in (WHOLE,) if request.max_workspace is None else (WHOLE, BOUNDED):
                yield Candidate(FAMILY, self.name, None, (("slab", slab),))
            return
        if self.name != TILED or request.dtype not in TILES:
            yield Candidate(FAMILY, self.name)
            return
        seen = set()
        last = Layout.COLUMNS not in request.layouts[1:]
        for choice in range(tile_choices(request.dtype, last)):
            tiles = tuple(tile_of(request.dtype, one, choice) for one in chain_in(request).patterns)
            if tiles not in seen:
                seen.add(tiles)
                yield Candidate(FAMILY, self.name, None, (("tile", choice),))

    def device_reason(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        """See `StructuredStrategy`."""
        if self.name == TRANSPOSED:
            return transposed_reason(_transposed(candidate, request, machine))
        if self.name == FUSED:
            return fused_reason(chain_in(request).patterns, request.n, request.dtype)
        if self.name == GATHER:
            return gather_reason(chain_in(request).patterns, request.n, request.dtype)
        if self.name == TILED:
            return tiled_reason(chain_in(request).patterns, request.n, request.dtype, _choice(candidate))
        return None

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`."""
        if 0 in (*request.shape, *request.batch):
            return []
        assert isinstance(machine.costs, CudaCostModel)
        patterns = chain_in(request).patterns
        if (product := _transposed(candidate, request, machine)) is not None:
            return self._transposed_stages(product, request, machine)
        if self.name in (WIDENED, DENSE):
            patterns = rewritten_patterns(patterns, self.name)
        stages: list[Stage] = []
        for places in self._launched(patterns, request):
            some = [patterns[place] for place in places]
            if (seconds := self._kernel_seconds(some, candidate, request, machine.costs)) is not None:
                stages.append(_kernel_stage(some, seconds, request))
                continue
            first = places[-1] == len(patterns) - 1 and request.layouts[1] is Layout.COLUMNS
            last = places[0] == 0 and request.layouts[2] is Layout.COLUMNS
            stages += self._factor_stages(some[0], request, machine.costs, first, last)
        return [*stages, *self._launches(patterns, stages)]

    def _launched(self, patterns: Sequence[Pattern], request: Request) -> Sequence[tuple[int, ...]]:
        """Return the factors of every launch, right-most first."""
        if self.name == FUSED:
            return fused_places(patterns, request.n, request.dtype)
        return [(place,) for place in reversed(range(len(patterns)))]

    def _kernel_seconds(
        self, patterns: Sequence[Pattern], candidate: Candidate, request: Request, costs: CudaCostModel
    ) -> float | None:
        """Return the seconds of our kernel for these factors, NaN if not measured; None if they run by GEMMs."""
        n, dtype = request.n, request.dtype
        if self.name == TILED:
            return tile_seconds(patterns[0], n, dtype, _choice(candidate), costs)
        if len(patterns) == 2:
            return scalar_seconds(patterns, n, dtype, FUSED_SHARES, costs)
        if self.name == GATHER or (self.name == FUSED and gather_reason(patterns, n, dtype) is None):
            return scalar_seconds(patterns, n, dtype, GATHER_SHARES, costs)
        return None

    def _factor_stages(
        self,
        pattern: Pattern,
        request: Request,
        costs: CudaCostModel,
        first: bool,
        last: bool,
        calls: int | None = None,
    ) -> list[Stage]:
        """Return the stages of one factor; `first` and `last`: its input and its result are batch-first.

        `calls` is the number of batched GEMMs, by default that of GEMMs on views.
        """
        item, n = itemsize(request.dtype), request.n
        a, b, c, d = pattern.sizes
        moved = ((pattern.rows + pattern.cols) * n + pattern.nonzeros) * item
        flops = 2.0 * dtype_of(request.dtype).parts ** 2 * pattern.nonzeros * n
        name = f"{a * d} blocks {b}x{c}"
        if calls is None:
            calls = 1 if self.baseline else min(a, d)
        seconds = calls * block_seconds(request.dtype, b, c, n, a * d // calls, costs)
        if self.name == WIDENED:
            seconds = max(seconds / WIDENED_GAINS.get(request.dtype, 1.0), float(costs.combine(moved)))
        found = [Stage(name, flops, moved, known(seconds), (b, c, n))]
        if self.baseline:
            turned = pattern.rows + pattern.cols if d > 1 else 0
        else:
            turned = (pattern.cols * first + pattern.rows * last) if d > 1 else 0
        if turned:
            permuted = permutation_seconds(pattern, turned * n, item, costs, rows=not (first or last))
            found.append(Stage("permutations", 0, 2 * turned * n * item, known(permuted)))
        return found

    def _transposed_stages(self, product: TransposedProduct, request: Request, machine: Machine) -> list[Stage]:
        """Return the stages of the transpositions and the factors between them, without traffic within the cache."""
        assert isinstance(machine.costs, CudaCostModel)
        item, n = itemsize(request.dtype), request.n
        slabs = -(-n // product.slab)
        some = replace(request, n=min(product.slab, n))
        stages = []
        calls = product.calls
        for pattern, count in zip(reversed(product.patterns), reversed(calls), strict=True):
            (one,) = self._factor_stages(pattern, some, machine.costs, False, False, count)
            seconds = None if one.seconds is None else slabs * one.seconds
            stages.append(Stage(one.name, slabs * one.flops, slabs * one.bytes, seconds, one.product))
        passes = 1 if product.workspace(n, item) <= _cache(machine) else 2
        turned = product.patterns[-1].cols * product.first + product.patterns[0].rows * product.last
        moved = passes * turned * n * item
        kernels = slabs * (product.first + product.last)
        seconds = transposition_seconds(moved, kernels, item, machine.costs)
        stages.append(Stage("transpositions", 0, moved, known(seconds)))
        if any(stage.seconds is None for stage in stages):
            return stages
        launches = kernels + slabs * sum(calls)
        host = host_seconds(STRIDED, slabs * len(product.patterns), launches)
        shown = host - sum(stage.seconds or 0.0 for stage in stages)
        return [*stages, Stage("launches", 0, 0, shown)] if shown > 0 else stages

    def _launches(self, patterns: Sequence[Pattern], stages: Sequence[Stage]) -> list[Stage]:
        """Return the stage of host time that the other stages do not hide; empty if their seconds are unknown."""
        if any(stage.seconds is None for stage in stages):
            return []
        copies = 2 * sum(stage.name == "permutations" for stage in stages)
        calls = sum(1 if self.baseline or self.name in KERNELS else min(one.a, one.d) for one in patterns)
        host = host_seconds(self.name, len(patterns), calls + copies)
        shown = host - sum(stage.seconds or 0.0 for stage in stages)
        least = SHOWN * len(patterns) * self.baseline
        return [Stage("launches", 0, 0, max(shown, least))] if max(shown, least) > 0 else []

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: an upper bound of the memory that torch allocates."""
        patterns, item = chain_in(request).patterns, itemsize(request.dtype)
        if (product := _transposed(candidate, request, machine)) is not None:
            return product.workspace(request.n, item)
        first, last = (layout is Layout.COLUMNS for layout in request.layouts[1:])
        copied = self.baseline or (
            self.name == STRIDED and ((first and patterns[-1].d > 1) or (last and patterns[0].d > 1))
        )
        widest = max(max(one.rows, one.cols) for one in patterns)
        held = 2 * widest * request.n * item if len(patterns) > 1 or copied else 0
        return held + (rewritten_bytes(self.name, patterns, item) if self.name in REWRITES else 0)

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`."""
        structure, dtype = chain_in(request), request.dtype
        patterns, rewrite = structure.patterns, None
        product: Product
        if (transposed := _transposed(candidate, request, machine)) is not None:
            product = transposed.run
        elif self.name == FUSED:
            product = FusedChain(patterns, dtype).run
        elif self.name in REWRITES:
            rewrite = partial(rewritten, patterns=patterns, rewrite=self.name)
            product = product_of(STRIDED, rewritten_patterns(patterns, self.name), dtype)
        else:
            product = product_of(self.name, patterns, dtype, _choice(candidate))
        return StructuredExecutor(request, structure, product, self.workspace(candidate, request, machine), rewrite)


def _choice(candidate: Candidate) -> int:
    return int(dict(candidate.parameters).get("tile", 0))


def _transposed(candidate: Candidate, request: Request, machine: Machine) -> TransposedProduct | None:
    """Return the product between transpositions that a candidate names; None if it names none or no valid slab."""
    if candidate.strategy != TRANSPOSED:
        return None
    first, last = (layout is Layout.COLUMNS for layout in request.layouts[1:])
    slab, item = int(dict(candidate.parameters)["slab"]), itemsize(request.dtype)
    patterns, most = chain_in(request).patterns, request.max_workspace
    return transposed_product(patterns, request.n, first, last, slab, item, most)


def _cache(machine: Machine) -> int:
    """Return the bytes of the GPU's last cache; 0 if unknown."""
    return machine.profile.caches[-1] if machine.profile.caches else 0


def _kernel_stage(patterns: Sequence[Pattern], seconds: float, request: Request) -> Stage:
    """Return the stage of one launch of a Triton kernel that multiplies by these factors."""
    parameters = sum(one.nonzeros for one in patterns)
    moved = ((patterns[0].rows + patterns[-1].cols) * request.n + parameters) * itemsize(request.dtype)
    flops = 2.0 * dtype_of(request.dtype).parts ** 2 * parameters * request.n
    name = " * ".join(f"{one.a * one.d} blocks {one.b}x{one.c}" for one in patterns)
    return Stage(name, flops, moved, known(seconds))

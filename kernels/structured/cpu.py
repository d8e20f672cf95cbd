"""Strategies for Kronecker-sparse products on the CPU: slabs in cache, larger blocks, and the baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy.typing as npt

from ..cpu.executor import StagedCore, is_empty
from ..cpu.reasons import basic_reason
from ..cpu.strategy import CpuStrategy
from ..cpu.workspace import Pool, shared_pool
from ..dtypes import dtype_of
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Stage
from ..request import Layout, Request
from .executor import Factors, StructuredExecutor
from .pattern import Pattern
from .permuted import PermutedProduct
from .rewrites import DENSE, REWRITES, WIDENED, rewritten, rewritten_bytes, rewritten_patterns
from .slabs import GATHERED, GATHERED_WIDE, SlabProduct
from .strategy import FAMILY, StructuredStrategy, chain_in

Matrix = npt.NDArray[Any]

SLABS = "slabs"
"""The strategy that multiplies by the unmodified factors."""

SLAB_WIDTHS = (128, 512, 2048)
"""Columns of the batch that a thread multiplies by all factors at once."""

CALL_SECONDS = 3e-6
"""Overhead in seconds of a GEMM when one call of numpy multiplies many blocks. Measured on two cores,
patterns (64,8,8,8) and (1024,2,2,2), batch 4096 in slabs of 128.
"""

COPIES = {GATHERED: 1.0, GATHERED_WIDE: 2.0, "permutations": 12.0}
"""Seconds of a strided copy relative to a plain one of as many bytes: within the rows of a slab, and into fresh memory.
Measured on two cores, float32, batch 4096: slabs with d of 2 to 8 at 0.7 to 1.2, with d of 16 to 96 at 1.3 to 2.5 (one
thread, nine patterns); permutations of (1,192,48,8), (1,256,256,4) and (4,128,128,16) in both layouts 10 to 20.
"""


@dataclass(frozen=True)
class CpuKronecker(StructuredStrategy, CpuStrategy):
    """A strategy for products by Kronecker-sparse factors on the CPU.

    - slabs: slabs of the batch, one per thread, each multiplied by all factors in cache; GEMMs on strided views,
      transposed in cache if a batch-first X cannot be read in place.
    - widened: the same by (a, bd, cd, 1): d times the multiplications, no transposition.
    - dense: the whole matrix, within `max_extra_bytes`.
    - bmm: copies that gather blocks, a batched GEMM, copies back: the baseline.
    """

    family: str = FAMILY

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """See `StructuredStrategy`."""
        if self.baseline:
            yield Candidate(FAMILY, self.name)
            return
        widths = sorted({min(width, max(request.n, 1)) for width in SLAB_WIDTHS})
        for width in widths:
            yield Candidate(FAMILY, self.name, None, (("slab", width),))

    def device_reason(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        """See `StructuredStrategy`."""
        if reason := basic_reason(None, request):
            return reason
        if self.name in (SLABS, WIDENED, DENSE) and machine.threads > 1 and not machine.blas_limited:
            return "the library of the products has no thread limit that could be set for each slab"
        return None

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`: every stage is bound by its arithmetic or by memory."""
        if is_empty(request):
            return []
        stages = self.core(candidate, request, machine).stages()
        mode = "whole" if self.baseline else "tasks"
        return [replace(one, seconds=_seconds(one, request, machine, mode)) for one in stages]

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`; the permuted copies of the baseline are allocated by the library."""
        if is_empty(request):
            return 0
        patterns, item = chain_in(request).patterns, request.itemsize
        held = 0
        if self.baseline:
            held = 2 * request.n * max(one.rows + one.cols for one in patterns) * item
        if self.name in REWRITES:
            held += rewritten_bytes(self.name, patterns, item)
        return self.core(candidate, request, machine).workspace(machine.threads) + held

    def core(self, candidate: Candidate, request: Request, machine: Machine) -> StagedCore:
        """See `CpuStrategy.core`."""
        patterns: tuple[Pattern, ...] = chain_in(request).patterns
        first, last = (layout is Layout.COLUMNS for layout in request.layouts[1:])
        if self.baseline:
            return PermutedProduct(patterns, request.n, request.dtype)
        if self.name != SLABS:
            patterns = rewritten_patterns(patterns, self.name)
        slab = max(1, min(int(dict(candidate.parameters)["slab"]), request.n))
        return SlabProduct(patterns, request.n, request.dtype, first, last, slab)

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`."""
        structure = chain_in(request)
        if is_empty(request):
            return StructuredExecutor(request, structure, _nothing, 0)
        core = self.core(candidate, request, machine)
        core.compile()
        rewrite = None
        if self.name in REWRITES:
            rewrite = partial(rewritten, patterns=structure.patterns, rewrite=self.name)
        pool = shared_pool if machine.pool is None else machine.pool
        product = partial(_in_pool, core, pool, machine.threads)
        return StructuredExecutor(request, structure, product, self.workspace(candidate, request, machine), rewrite)


def _nothing(factors: Factors, x: Matrix, out: Matrix) -> None:
    """Compute an empty product."""


def _in_pool(core: StagedCore, pool: Pool, threads: int, factors: Any, x: Matrix, out: Matrix) -> None:
    with pool.take(core.workspace(threads)) as arena:
        core.run(factors, x, out, arena, threads)


def _seconds(stage: Stage, request: Request, machine: Machine, mode: str) -> float | None:
    """Return the seconds of a stage: its products or its traffic, whichever takes longer; None if a rate is unknown."""
    costs = machine.costs
    moved = float(costs.combine(stage.bytes))
    if stage.product is None:
        found = moved * COPIES[stage.name]
    else:
        count = stage.flops / (2.0 * dtype_of(request.dtype).parts ** 2 * math.prod(stage.product))
        waiting = count * CALL_SECONDS / (machine.threads if mode == "tasks" else 1)
        found = max(moved, float(costs.gemm(request.dtype, *stage.product, count=count, mode=mode)) + waiting)
    return None if math.isnan(found) else found

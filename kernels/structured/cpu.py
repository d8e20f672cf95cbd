"""Strategies for products by factors on the CPU: batched products on views, slabs in cache, larger blocks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..cpu.strategy import basic_reason
from ..cpu.threads import parallel_tasks, single_threaded_blas
from ..cpu.workspace import Arena, Pool, shared_pool
from ..dtypes import dtype_of
from ..measured import measured
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Parameters, Stage
from ..request import Request
from .blocks import NARROW, Matrix
from .chain import FactorChain
from .executor import Product
from .rewrites import WIDENED, rewritten_bytes, rewritten_chain
from .strategy import NATURAL_ONLY, StructuredStrategy, batch_first, chain_in
from .views import PERMUTED, Ends, arrays_in, buffer_rows, copied_ends, held_bytes, view_chain

GATHERED, GATHERED_WIDE, PERMUTATIONS = "gathered slabs", "gathered slabs, d > 8", "permutations"
"""Stages that copy features within rows: in cache, for a narrow d and for others, and in fresh memory."""


def _copied(kernel: str, source: Matrix, target: Matrix, outer: int, inner: int, d: int) -> None:
    from . import slab_kernels

    if source.dtype == np.complex64:  # copied as entries of as many bytes, whose kernel may be compiled already
        source, target = source.view(np.float64), target.view(np.float64)
    getattr(slab_kernels, kernel)(source.T, target.T, outer, d, slab_kernels.narrow_of(d))


GATHERED_ROWS = Ends(partial(_copied, "gather_blocks"), partial(_copied, "scatter_blocks"))
"""Features are gathered by blocks within the rows of a slab."""


@dataclass(frozen=True)
class ViewProduct:
    """W X by batched products of numpy on views.

    X (cols, batch) and the result (rows, batch) are stored batch-first (`first`, `last`: their columns are contiguous)
    or batch-last. With `slab` the batch is divided into slabs of so many columns, each on one thread and multiplied by
    all factors in buffers that fit in cache; else every product is of the whole batch, on all threads.
    """

    structure: FactorChain
    batch: int
    dtype: str
    first: bool
    last: bool
    slab: int | None = None

    @property
    def _width(self) -> int:
        return min(self.slab or self.batch, self.batch)

    @cached_property
    def _buffer_rows(self) -> tuple[int, int]:
        """Rows of the two buffers that a slab alternates between."""
        return buffer_rows(self.structure, self.first, self.last)

    def _slab_bytes(self) -> int:
        return held_bytes(self._buffer_rows, self._width, dtype_of(self.dtype).numpy.itemsize)

    def workspace(self, threads: int) -> int:
        return min(threads, -(-self.batch // max(self._width, 1))) * self._slab_bytes()

    def stages(self) -> list[Stage]:
        """Return the products of every factor, then the copies of the ends."""
        item, flop = dtype_of(self.dtype).numpy.itemsize, 2 * dtype_of(self.dtype).parts ** 2
        patterns = self.structure.patterns
        found = []
        for one in reversed(patterns):
            flops, moved = flop * one.nonzeros * self.batch, one.moved_elements(self.batch) * item
            found.append(Stage(one.label, flops, moved, product=(one.b, one.c, self._width)))
        ends = (patterns[-1], patterns[-1].cols), (patterns[0], patterns[0].rows)
        for copied, (one, features) in zip(copied_ends(self.structure, self.first, self.last), ends, strict=True):
            if copied:
                name = PERMUTATIONS if self.slab is None else GATHERED if one.d <= NARROW else GATHERED_WIDE
                found.append(Stage(name, 0, 2 * features * self.batch * item))
        return found

    def run(self, pool: Pool, threads: int, a: Any, b: Matrix, out: Matrix) -> None:
        """Compute out = W b by the factors `a`, left-most first, in buffers of a pool, on so many threads."""
        with pool.take(self.workspace(threads)) as arena:
            if self.slab is None:
                self._multiply(a, b, out, arena, PERMUTED)
                return
            count = -(-self.batch // self.slab)
            arenas = arena.split(min(threads, count), self._slab_bytes())

            def one(place: int, worker: int) -> None:
                some = slice(place * self._width, min((place + 1) * self._width, self.batch))
                self._multiply(a, b[:, some], out[:, some], arenas[worker].rest(), GATHERED_ROWS)

            with single_threaded_blas():
                parallel_tasks(one, count, threads)

    def _multiply(self, factors: Any, x: Matrix, out: Matrix, arena: Arena, ends: Ends) -> None:
        empty = arrays_in(arena, self._buffer_rows, x.shape[1], np.dtype(x.dtype))
        view_chain(self.structure, self.first, self.last).run(factors, x, out, ends, empty)


SLAB_WIDTHS = (128, 512, 2048)
"""Columns of the batch that a thread multiplies by all factors at once."""

PRICES = measured("structured.cpu")


@dataclass(frozen=True)
class CpuStructured(StructuredStrategy):
    """A strategy for products by factors on the CPU.

    - strided: one of numpy's batched products a factor on views, the batch last between them; features of a batch-first
      end whose blocks have rows apart are permuted. The baseline.
    - slabs: slabs of the batch, one per thread, each multiplied so by all factors in cache.
    - widened: slabs by (a, bd, cd, 1): d times the multiplications, no transposition.
    - dense: slabs by the whole matrix, within `max_extra_bytes`.
    """

    device: str = "cpu"

    def settings(self, request: Request) -> Iterable[Parameters]:
        """See `StructuredStrategy`: widths of slabs."""
        if self.baseline:
            return ((),)
        return ((("slab", width),) for width in sorted({min(width, max(request.n, 1)) for width in SLAB_WIDTHS}))

    def device_reason(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        if reason := basic_reason(None, request):
            return reason
        if not self.baseline and machine.threads > 1 and not machine.blas_limited:
            return "the library of the products has no thread limit that could be set for each slab"
        return NATURAL_ONLY if self.name == WIDENED and chain_in(request).is_blocked else None

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`: every stage is bound by its arithmetic or by memory."""
        stages = self.core(candidate, request).stages()
        mode = "whole" if self.baseline else "tasks"
        return [replace(one, seconds=_seconds(one, request, machine, mode)) for one in stages]

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        if request.is_empty:
            return 0
        held = rewritten_bytes(chain_in(request), self.name, request.itemsize)
        return self.core(candidate, request).workspace(machine.threads) + held

    def core(self, candidate: Candidate, request: Request) -> ViewProduct:
        """Return the core of a candidate that can run a request."""
        slab = None if self.baseline else max(1, min(int(dict(candidate.parameters)["slab"]), request.n))
        chain = rewritten_chain(chain_in(request), self.name)
        return ViewProduct(chain, request.n, request.dtype, *batch_first(request), slab)

    def product(self, candidate: Candidate, request: Request, machine: Machine) -> Product:
        pool = shared_pool if machine.pool is None else machine.pool
        return partial(self.core(candidate, request).run, pool, machine.threads)


def _seconds(stage: Stage, request: Request, machine: Machine, mode: str) -> float:
    """Return the seconds of a stage: its products or its traffic, whichever takes longer; NaN if a rate is unknown."""
    costs = machine.costs
    moved = float(costs.combine(stage.bytes))
    if stage.product is None:
        return moved * PRICES.copies[stage.name]
    count = stage.flops / (2.0 * dtype_of(request.dtype).parts ** 2 * math.prod(stage.product))
    waiting = count * PRICES.call / machine.threads if mode == "tasks" else (count - 1) * PRICES.call
    return max(moved, float(costs.gemm(request.dtype, *stage.product, count=count, mode=mode)) + waiting)


STRATEGIES = (
    CpuStructured("strided", baseline=True),
    *(CpuStructured(name) for name in ("slabs", "widened", "dense")),
)

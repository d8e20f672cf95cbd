"""Products by factors on the CPU: slabs of the batch, each multiplied by all factors in cache."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..cpu.threads import parallel_tasks, single_threaded_blas
from ..cpu.workspace import Arena
from ..dtypes import dtype_of
from ..planning.strategy import Stage
from .blocks import NARROW, Matrix
from .chain import FactorChain
from .views import PERMUTED, Ends, arrays_in, buffer_rows, copied_ends, held_bytes, view_chain

GATHERED, GATHERED_WIDE, PERMUTATIONS = "gathered slabs", "gathered slabs, d > 8", "permutations"
"""Stages that copy features within rows: in cache, for a narrow d and for others, and in fresh memory."""


def _gather(x: Matrix, packed: Matrix, outer: int, inner: int, d: int) -> None:
    from .slab_kernels import gather_blocks, narrow_of

    gather_blocks(x.T, packed.T, outer, d, narrow_of(d))


def _scatter(packed: Matrix, y: Matrix, outer: int, inner: int, d: int) -> None:
    from .slab_kernels import narrow_of, scatter_blocks

    scatter_blocks(packed.T, y.T, outer, d, narrow_of(d))


GATHERED_ROWS = Ends(_gather, _scatter)
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
    def _itemsize(self) -> int:
        return dtype_of(self.dtype).numpy.itemsize

    @property
    def _width(self) -> int:
        return min(self.slab or self.batch, self.batch)

    @cached_property
    def _buffer_rows(self) -> tuple[int, int]:
        """Rows of the two buffers that a slab alternates between."""
        return buffer_rows(self.structure, self.first, self.last)

    def _slab_bytes(self) -> int:
        return held_bytes(self._buffer_rows, self._width, self._itemsize)

    def workspace(self, threads: int) -> int:
        return min(threads, -(-self.batch // self._width)) * self._slab_bytes()

    def stages(self) -> list[Stage]:
        """Return the products of every factor, then the copies of the ends."""
        item, flop = self._itemsize, 2 * dtype_of(self.dtype).parts ** 2
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

    def run(self, a: Any, b: Matrix, out: Matrix, arena: Arena, threads: int) -> None:
        """Compute out = W b by the factors `a`, left-most first, in buffers of an arena, on so many threads."""
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

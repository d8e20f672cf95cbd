"""Products by Kronecker-sparse factors on the CPU: slabs of the batch, each multiplied by all factors in cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cpu.threads import parallel_tasks, single_threaded_blas
from ..cpu.workspace import Arena, aligned
from ..dtypes import dtype_of
from ..planning.strategy import Stage
from .blocks import NARROW, alternating_rows, as_blocks
from .pattern import Pattern

Matrix = npt.NDArray[Any]

GATHERED, GATHERED_WIDE = "gathered slabs", "gathered slabs, d > 8"
"""Stages that copy features within rows, for a narrow d and for others."""


@dataclass(frozen=True)
class SlabProduct:
    """K1 ... KL X by slabs of the batch, each on one thread; a `StagedCore` whose first operand is the factors.

    X (cols, batch) and the result (rows, batch) are stored batch-first (`first`, `last`: their columns are
    contiguous) or batch-last. A slab is multiplied by all factors in buffers that fit in cache, batch-last between
    them. If X is batch-first and the factor that reads it has d > 1, the features of every row of the slab are gathered
    by blocks first, so that GEMMs can read them; those of the result are scattered at the end.
    """

    patterns: tuple[Pattern, ...]
    batch: int
    dtype: str
    first: bool
    last: bool
    slab: int

    @cached_property
    def _ordered(self) -> tuple[Pattern, ...]:
        """The patterns in the order of multiplication, right-most first."""
        return self.patterns[::-1]

    @property
    def _itemsize(self) -> int:
        return dtype_of(self.dtype).numpy.itemsize

    @property
    def _turns_in(self) -> bool:
        """True if the features of X are gathered by blocks first."""
        return self.first and self._ordered[0].d > 1

    @property
    def _turns_out(self) -> bool:
        return self.last and self._ordered[-1].d > 1

    @cached_property
    def _buffer_rows(self) -> tuple[int, int]:
        """Rows of the two buffers that a slab alternates between."""
        return alternating_rows(self.patterns, self._turns_in, self._turns_out)

    def _slab_bytes(self) -> int:
        width = min(self.slab, self.batch)
        return sum(aligned(rows * width * self._itemsize) for rows in self._buffer_rows)

    def workspace(self, threads: int) -> int:
        """See `Core.workspace`."""
        count = -(-self.batch // self.slab)
        return min(threads, count) * self._slab_bytes()

    def compile(self) -> None:
        """See `StagedCore.compile`: kernels are compiled for the strides of their first operands, at the first run."""

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        """See `StagedCore.stages`: the products of every factor, then the copies within rows."""
        item, width = self._itemsize, min(self.slab, self.batch)
        flop = 2 * dtype_of(self.dtype).parts ** 2
        found = []
        for pattern in self._ordered:
            moved = (pattern.rows + pattern.cols) * self.batch + pattern.nonzeros
            name = f"{pattern.a * pattern.d} blocks {pattern.b}x{pattern.c}"
            flops = times * flop * pattern.nonzeros * self.batch
            found.append(Stage(name, flops, times * moved * item, product=(pattern.b, pattern.c, width)))
        ends = (self._turns_in, self._ordered[0].cols), (self._turns_out, self._ordered[-1].rows)
        for (turns, features), pattern in zip(ends, (self._ordered[0], self._ordered[-1]), strict=True):
            if turns:
                name = GATHERED if pattern.d <= NARROW else GATHERED_WIDE
                found.append(Stage(name, 0, 2 * times * features * self.batch * item))
        return found

    def run(self, a: Any, b: Matrix, out: Matrix, arena: Arena, threads: int) -> None:
        """See `Core.run`. a: parameters (a, d, b, c) of K1 ... KL."""
        factors = list(reversed(a))
        count = -(-self.batch // self.slab)
        arenas = arena.split(min(threads, count), self._slab_bytes())

        def one(place: int, worker: int) -> None:
            some = slice(place * self.slab, min((place + 1) * self.slab, self.batch))
            self._one(factors, b[:, some], out[:, some], arenas[worker].rest())

        with single_threaded_blas():
            parallel_tasks(one, count, threads)

    def _one(self, factors: Sequence[Matrix], x: Matrix, out: Matrix, arena: Arena) -> None:
        dtype, width = x.dtype, x.shape[1]
        buffers = [arena.array((rows, width), dtype) for rows in self._buffer_rows]
        a, b, c, d = self._ordered[0].sizes
        turn, source = 0, None
        if self._turns_in:
            held = buffers[0][: len(x)].reshape(width, len(x))
            _copy(x.T, held, a, c, d, gather=True)
            turn, source = 1, _batch_first(held, a, c, d)
        for place, (weights, pattern) in enumerate(zip(factors, self._ordered, strict=True)):
            a, b, c, d = pattern.sizes
            ends = place == len(factors) - 1
            source = as_blocks(x, a, c, d) if source is None else source
            if ends and self._turns_out:
                held = buffers[turn % 2][: pattern.rows].reshape(width, pattern.rows)
                np.matmul(weights, source, out=_batch_first(held, a, b, d))
                _copy(held, out.T, a, b, d, gather=False)
                return
            x = out if ends else buffers[turn % 2][: pattern.rows]
            np.matmul(weights, source, out=as_blocks(x, a, b, d))
            source, turn = None, turn + 1


def _batch_first(matrix: Matrix, a: int, c: int, d: int) -> Matrix:
    """Return the view (a, d, c, n) of the blocks of a matrix (n, a d c)."""
    return matrix.reshape(len(matrix), a, d, c).transpose(1, 2, 3, 0)


def _copy(source: Matrix, target: Matrix, a: int, c: int, d: int, *, gather: bool) -> None:
    from .slab_kernels import gather_blocks, narrow_of, scatter_blocks

    (gather_blocks if gather else scatter_blocks)(source, target, a, d, narrow_of(d))

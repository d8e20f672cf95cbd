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
from .blocks import alternating_rows, as_blocks
from .pattern import Pattern

Matrix = npt.NDArray[Any]


@dataclass(frozen=True)
class SlabProduct:
    """K1 ... KL X by slabs of the batch, each on one thread; a `StagedCore` whose first operand is the factors.

    X (cols, batch) and the result (rows, batch) are stored batch-first (`first`, `last`: their columns are
    contiguous) or batch-last. A slab is multiplied by all factors batch-last, in buffers that fit in cache. If
    X is batch-first and the factor that reads it has d > 1, the slab is transposed first; likewise the
    result at the end.
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
        """True if slabs of X are transposed first."""
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
        """See `StagedCore.stages`: the products of every factor, then the transposed copies."""
        item, width = self._itemsize, min(self.slab, self.batch)
        flop = 2 * dtype_of(self.dtype).parts ** 2
        found = []
        for pattern in self._ordered:
            moved = (pattern.rows + pattern.cols) * self.batch + pattern.nonzeros
            name = f"{pattern.a * pattern.d} blocks {pattern.b}x{pattern.c}"
            flops = times * flop * pattern.nonzeros * self.batch
            found.append(Stage(name, flops, times * moved * item, product=(pattern.b, pattern.c, width)))
        turned = self._turns_in * self._ordered[0].cols + self._turns_out * self._ordered[-1].rows
        if turned:
            found.append(Stage("transposed slabs", 0, 2 * times * turned * self.batch * item))
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
        turn = 0
        if self._turns_in:
            held = buffers[0][: len(x)]
            _transpose(x.T, held)
            x, turn = held, 1
        for place, (weights, pattern) in enumerate(zip(factors, self._ordered, strict=True)):
            ends = place == len(factors) - 1 and not self._turns_out
            target = out if ends else buffers[turn % 2][: pattern.rows]
            a, b, c, d = pattern.sizes
            np.matmul(weights, as_blocks(x, a, c, d), out=as_blocks(target, a, b, d))
            x, turn = target, turn + 1
        if self._turns_out:
            _transpose(x, out.T)


def _transpose(source: Matrix, target: Matrix) -> None:
    from .slab_kernels import transpose_into

    transpose_into(source, target)

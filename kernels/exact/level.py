"""One level of a scheme in an exact ring, whatever its arithmetic: sums of A and of B, products, and sums of those."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import Array, Sizes
from ..cpu.executor import Core
from ..cpu.threads import parallel_rows, parallel_tasks
from ..cpu.workspace import aligned
from ..planning.strategy import Stage
from .schemes import ExactMap, RingMaps

Pair = tuple[int, int]
Places = npt.NDArray[np.int64]
"""Rows and columns (count, 2), in stored elements."""

Blocks = tuple[Array, Places]
"""A matrix, and the places of the first elements of its blocks."""


class LevelArithmetic(ABC):
    """The elements of a level: their dtype and storage, and sums of blocks of them.

    `pads`: `combine` reads whole blocks only, so that other operands are copied with zeros. `per_term`: operations of
    a stored element in a term of a sum.
    """

    dtype: np.dtype[Any]
    pads = True
    per_term = 2

    def width(self, cols: int) -> int:
        """Return the stored elements of a row of so many columns."""
        return cols

    @abstractmethod
    def combine(self, role: int, sums: ExactMap, source: Blocks, target: Blocks, block: Pair, threads: int) -> None:
        """Compute the blocks of target as sums of those of source: the first `block` elements from their places on.

        Role 0, 1: slabs, one below the other, of sums of blocks of A or B; 2: blocks of C of sums of slabs.
        """

    def products(self, workers: int) -> AbstractContextManager[object]:
        """Return a context for products by so many workers."""
        return nullcontext()

    def passes(self, read: int, written: int, copied: int, width: int) -> int:
        """Return how often memory of the size of a block is moved, for so many blocks of rows of a stored width."""
        return read + written


@dataclass(frozen=True)
class ExactLevel(Core):
    """One level of a scheme, and all below it, of arrays or of tensors.

    Sums of blocks are stored as slabs, then multiplied, then the products are summed: each step reads every block once.
    Threads share every sum; each product is computed by one thread. `bound` is the largest magnitude of an element of
    C; `pure`: neither sums nor products are reduced.
    """

    level: RingMaps
    sizes: Sizes
    block: Sizes
    arithmetic: LevelArithmetic
    inner: Any
    bound: int = 1
    pure: bool = True

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of operands, sums and products."""
        return self.arithmetic.dtype

    @cached_property
    def grids(self) -> tuple[Pair, Pair, Pair]:
        """Blocks of A, B and C down and across."""
        m, k, n = self.level.grid
        return (m, k), (k, n), (m, n)

    @cached_property
    def blocks(self) -> tuple[Pair, Pair, Pair]:
        """Rows and stored elements of a row of a block of A, B and C."""
        (m, k, n), width = self.block, self.arithmetic.width
        return (m, width(k)), (k, width(n)), (m, width(n))

    @cached_property
    def _places(self) -> list[tuple[Places, Places]]:
        """The places of the blocks of A, B and C in their matrices, and in their slabs."""
        grids, rank = zip(self.grids, self.blocks, strict=True), self.level.rank
        return [(corners(*grid, *block), corners(rank, 1, block[0], 0)) for grid, block in grids]

    @property
    def _shapes(self) -> list[tuple[int, int, int]]:
        """The shapes of the sums of A, of B, and of the products."""
        return [(self.level.rank, *block) for block in self.blocks]

    @cached_property
    def _whole(self) -> tuple[Pair | None, ...]:
        """The shapes to which A and B are padded; None for an operand of whole blocks."""
        (m, k, n), width = self.sizes, self.arithmetic.width
        if not self.arithmetic.pads:
            return None, None, None
        shapes, found = ((m, width(k)), (k, width(n))), []
        for shape, (down, across), (rows, cols) in zip(shapes, self.grids, self.blocks, strict=False):
            whole = down * rows, across * cols
            found.append(None if shape == whole else whole)
        return *found, None

    def workspace(self, threads: int) -> int:
        item = self.dtype.itemsize
        own = sum(aligned(item * math.prod(shape)) for shape in self._shapes)
        padded = max(0 if shape is None else aligned(item * math.prod(shape)) for shape in self._whole)
        return own + max(padded, min(threads, self.level.rank) * aligned(self.inner.workspace(1)))

    def compile(self) -> None:
        """See `Core.compile`: for arrays; the kernels of tensors are compiled at the first run."""
        self.inner.compile()
        index, matrix, place = np.zeros(2, np.int64), np.zeros((1, 1), self.dtype), corners(1, 1, 1, 1)
        empty = ExactMap(index, index, np.zeros(1, np.int64))
        self.arithmetic.combine(0, empty, (matrix, place), (matrix.copy(), place), (1, 1), 1)

    def run(self, a: Array, b: Array, out: Array, arena: Any, threads: int = 1) -> None:
        """See `Core.run`; for tensors `arena` is a `TensorMemory`."""
        arithmetic, level, rank = self.arithmetic, self.level, self.level.rank
        left, right, products = (arena.array(shape, self.dtype) for shape in self._shapes)
        for role, sums, matrix, slabs in ((0, level.left, a, left), (1, level.right, b, right)):
            # A padded copy uses the memory of the products below, which are computed after the sums.
            if (shape := self._whole[role]) is not None:
                matrix = _padded(matrix, arena.rest().array(shape, self.dtype), threads)
            self._combine(role, sums, matrix, slabs, threads)
        workers = min(threads, rank)
        arenas = arena.rest().split(workers, self.inner.workspace(1))

        def multiply(r: int, worker: int) -> None:
            # A new view of the worker's memory: the last product allocated from its own.
            self.inner.run(left[r], right[r], products[r], arenas[worker].rest(), 1)

        with arithmetic.products(workers):
            parallel_tasks(multiply, rank, workers)
        self._combine(2, level.merge, out, products, threads)

    def _combine(self, role: int, sums: ExactMap, matrix: Array, slabs: Array, threads: int) -> None:
        """Compute the slabs of A or B (role 0, 1) from the matrix, or C (2) from the slabs of products."""
        block, (inside, stacked) = self.blocks[role], self._places[role]
        ends = (matrix, inside), (slabs.reshape(-1, block[1]), stacked)
        source, target = ends[::-1] if role == 2 else ends
        self.arithmetic.combine(role, sums, source, target, block, threads)

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        arithmetic, level, rank, found = self.arithmetic, self.level, self.level.rank, []
        label = f"{'x'.join(map(str, level.grid))}:{rank}"
        for role, sums in enumerate((level.left, level.right, level.merge)):
            count, (rows, width) = math.prod(self.grids[role]), self.blocks[role]
            copied = 0 if self._whole[role] is None else 2 * count  # written and read
            read, written = (rank, count) if role == 2 else (count, rank)
            size = times * rows * width
            moved = self.dtype.itemsize * size * arithmetic.passes(read, written, copied, width)
            found.append(Stage(f"sums of {'ABC'[role]}", arithmetic.per_term * size * sums.terms, moved, level=label))
        return [*found, *self.inner.stages(times * rank)]


def block_sizes(sizes: Sizes, grid: Sizes) -> Sizes:
    """Return the sizes of the blocks of A, B and C of a level: m, k, n."""
    m, k, n = (-(-size // parts) for size, parts in zip(sizes, grid, strict=True))
    return m, k, n


def corners(down: int, across: int, height: int, width: int) -> Places:
    """Return row and column of the first element of every block of a grid."""
    return np.array([(i * height, j * width) for i in range(down) for j in range(across)], np.int64)


def _padded(matrix: Array, target: Array, threads: int) -> Array:
    """Copy the matrix to the first rows and columns of target, with zeros elsewhere."""
    rows, cols = matrix.shape

    def pad(first: int, last: int) -> None:
        stop = max(first, min(last, rows))
        target[first:stop, :cols], target[first:stop, cols:] = matrix[first:stop], 0
        target[stop:last] = 0

    parallel_rows(pad, len(target), threads)
    return target

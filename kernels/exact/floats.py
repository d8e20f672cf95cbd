"""Cores of exact products of integers stored as floats: BLAS below proven bounds, levels of schemes above it.

A float64 represents every integer up to 2^53, so a product whose partial sums stay below that is exact in any order
of additions. Modulo n it is divided along k into such parts, and the sums of blocks are reduced only if they could
exceed the bound. Source: Dumas, Giorgi, Pernet, Dense linear algebra over word-size prime fields (2008).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ..cpu.threads import parallel_rows, parallel_tasks, single_threaded_blas
from ..cpu.workspace import Arena, aligned
from ..planning.strategy import Stage
from .padding import padded, padded_shapes
from .schemes import ExactMap, RingLevel

Matrix = npt.NDArray[Any]
Sizes = tuple[int, int, int]

LIMITS = {"float32": 1 << 24, "float64": 1 << 53}
"""The dtype represents every integer up to this magnitude."""

SHORT, PANEL_ROWS = 256, 128
"""For products of a smaller inner size, this many rows of A per thread are multiplied and reduced at once. Measured,
float32, 2048 modulo 1021, inner size 64: 0.28 s instead of 0.32 s; float64 takes 0.34 s.
"""


class FloatLeaf:
    """One product of integers of magnitudes at most `bounds`; a `StagedCore`.

    `bound` is that of the result, which is reduced modulo n if `reduce` is set or k must be divided.

    Raises:
        PlanError: a partial sum could exceed the exact range of the dtype.
    """

    def __init__(self, sizes: Sizes, dtype: str, modulus: int, bounds: tuple[int, int], reduce: bool) -> None:
        self.sizes, self.dtype, self.modulus = sizes, np.dtype(dtype), modulus
        limit, each = LIMITS[dtype] - modulus, max(1, bounds[0] * bounds[1])
        self.depth = min(sizes[1], (limit - half(modulus)) // each)
        self.pure: bool = self.depth == sizes[1] and not reduce
        if self.depth < 1 or (self.depth < sizes[1] and not modulus):
            raise PlanError(f"sums of {sizes[1]} products of entries up to {bounds} exceed what {dtype} holds exactly")
        self.reduce = not self.pure
        self.bound: int = sizes[1] * each if self.pure else half(modulus)

    def workspace(self, threads: int) -> int:
        """See `Core.workspace`."""
        m, k, n = self.sizes
        rows = min(m, self._height(threads))
        return aligned(rows * n * self.dtype.itemsize) if self.depth < k else 0

    def compile(self) -> None:
        """See `StagedCore.compile`."""
        from .combine import add_reduced, reduce_rows

        one = np.zeros((1, 1), self.dtype)
        add_reduced(one, 2.0, one, 0, 1)
        reduce_rows(one, 2.0, 0, 1)

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1) -> None:
        """See `Core.run`."""
        from .combine import add_reduced, reduce_rows

        (m, k, n), modulus = self.sizes, float(self.modulus)
        height = min(m, self._height(threads))
        product: Any = arena.array((height, n), self.dtype) if self.depth < k else None
        for first in range(0, m, height):
            some, target = a[first : first + height], out[first : first + height]
            rows = len(target)
            np.matmul(some[:, : self.depth], b[: self.depth], out=target)
            if self.reduce:
                parallel_rows(partial(reduce_rows, target, modulus), rows, threads)
            for start in range(self.depth, k, self.depth):
                stop = min(start + self.depth, k)
                np.matmul(some[:, start:stop], b[start:stop], out=product[:rows])
                parallel_rows(partial(add_reduced, product, modulus, target), rows, threads)

    def _height(self, threads: int) -> int:
        """Return the rows that are multiplied at once: few if reduced often, so that they stay in the caches."""
        return PANEL_ROWS * threads if self.depth < SHORT else self.sizes[0]

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        """See `StagedCore.stages`."""
        m, k, n = self.sizes
        item, parts = self.dtype.itemsize, -(-k // self.depth)
        product = m, self.depth, n
        moved = times * item * (m * k + k * n + parts * m * n)
        found = [
            Stage(f"{times * parts} products {m}x{self.depth}x{n}", 2.0 * times * m * k * n, moved, product=product)
        ]
        if self.reduce:
            found.append(Stage("reductions", times * parts * m * n, times * item * m * n * (2 + 3 * (parts - 1))))
        return found


class FloatLevel:
    """One level of a scheme on integers stored as floats, and all below it; a `StagedCore`.

    Raises:
        PlanError: a sum could exceed the exact range of the dtype, even after reduction or without a modulus.
    """

    def __init__(
        self,
        levels: tuple[RingLevel, ...],
        sizes: Sizes,
        dtype: str,
        modulus: int,
        bounds: tuple[int, int],
        reduce: bool,
    ) -> None:
        self.level, self.sizes, self.dtype, self.modulus = levels[0], sizes, np.dtype(dtype), modulus
        level, limit = self.level, LIMITS[dtype] - modulus
        self.block: Sizes = tuple(-(-size // parts) for size, parts in zip(sizes, level.grid, strict=True))  # type: ignore[assignment]
        sums = level.left.norm * bounds[0], level.right.norm * bounds[1]
        inner: FloatCore | None = None
        if max(sums) <= limit:
            try:
                inner = float_core(levels[1:], self.block, dtype, modulus, (max(sums[0], 1), max(sums[1], 1)), False)
            except PlanError:
                if not modulus:
                    raise
            if inner is not None and not (inner.pure and level.merge.norm * inner.bound <= limit):
                inner = None
        self.pure: bool = inner is not None and not reduce
        self.reduce_sums = inner is None
        self.reduce_result = not self.pure
        if inner is None:
            if not modulus:
                raise PlanError(f"sums of blocks of entries up to {bounds} exceed what {dtype} holds exactly")
            inner = float_core(levels[1:], self.block, dtype, modulus, (half(modulus),) * 2, True)
        self.inner = inner
        self.each = (
            _each(level.left, bounds[0], modulus, limit),
            _each(level.right, bounds[1], modulus, limit),
            _each(level.merge, inner.bound, modulus, limit),
        )
        self.bound: int = level.merge.norm * inner.bound if self.pure else half(modulus)

    @property
    def shapes(self) -> list[tuple[int, int, int]]:
        """The shapes of the sums of A, of B, and of the products."""
        m, k, n = self.block
        rank = self.level.rank
        return [(rank, m, k), (rank, k, n), (rank, m, n)]

    @property
    def _padded(self) -> list[tuple[int, int] | None]:
        """See `padded_shapes`."""
        (m, k, n), (bm, bk, bn) = self.sizes, self.block
        return padded_shapes(((m, k), (k, n)), ((bm, bk), (bk, bn)), self.level)

    def workspace(self, threads: int) -> int:
        """See `Core.workspace`."""
        own = sum(aligned(math.prod(shape) * self.dtype.itemsize) for shape in self.shapes)
        copied = max(0 if shape is None else aligned(math.prod(shape) * self.dtype.itemsize) for shape in self._padded)
        return own + max(copied, min(threads, self.level.rank) * aligned(self.inner.workspace(1)))

    def compile(self) -> None:
        """See `StagedCore.compile`."""
        from .combine import float_merge, float_sums, pad_rows

        self.inner.compile()
        slab, matrix = np.zeros((1, 1, 1), self.dtype), np.zeros((1, 1), self.dtype)
        index, values = np.zeros(2, np.int64), np.zeros(1, self.dtype)
        pad_rows(matrix, matrix.copy(), 0, 1)
        float_sums(matrix, (1, 1), (1, 1), index, index, values, 1.0, False, slab, 0, 1)
        float_merge(slab, (1, 1), (1, 1), index, index, values, 1.0, False, matrix, 0, 1)

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1) -> None:
        """See `Core.run`."""
        from .combine import float_merge

        left, right, products = (arena.array(shape, self.dtype) for shape in self.shapes)
        level, (m, k, n) = self.level, self.block
        gm, gk, gn = level.grid
        for matrix, shape, grid, block, sums, each, slabs in (
            (a, self._padded[0], (gm, gk), (m, k), level.left, self.each[0], left),
            (b, self._padded[1], (gk, gn), (k, n), level.right, self.each[1], right),
        ):
            # This uses the products' memory: they are computed after the sums.
            whole = matrix if shape is None else padded(matrix, arena.rest().array(shape, self.dtype), threads)
            self._add_blocks(whole, grid, block, sums, each, slabs, threads)
        workers = min(threads, level.rank)
        arenas = arena.rest().split(workers, self.inner.workspace(1))

        def multiply(r: int, worker: int) -> None:
            self.inner.run(left[r], right[r], products[r], arenas[worker].rest(), 1)

        if workers > 1:
            with single_threaded_blas():
                parallel_tasks(multiply, level.rank, workers)
        else:
            parallel_tasks(multiply, level.rank, 1)
        merge, values = level.merge, level.merge.values.astype(self.dtype)
        modulus = float(self.modulus if self.reduce_result else 0)
        parallel_rows(
            lambda i, j: float_merge(
                products, (gm, gn), (m, n), merge.starts, merge.places, values, modulus, self.each[2], out, i, j
            ),
            m,
            threads,
        )

    def _add_blocks(
        self,
        matrix: Matrix,
        grid: tuple[int, int],
        block: tuple[int, int],
        sums: ExactMap,
        each: bool,
        slabs: Any,
        threads: int,
    ) -> None:
        """Compute slabs = the sums of the blocks of a matrix, reduced if the bound requires it."""
        from .combine import float_sums

        modulus = float(self.modulus if self.reduce_sums else 0)
        starts, places, values = sums.starts, sums.places, sums.values.astype(self.dtype)
        parallel_rows(
            lambda i, j: float_sums(matrix, grid, block, starts, places, values, modulus, each, slabs, i, j),
            block[0],
            threads,
        )

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        """See `StagedCore.stages`."""
        level, (m, k, n) = self.level, self.block
        gm, gk, gn = level.grid
        found = []
        for name, blocks, sums, size in (
            ("A", gm * gk, level.left, m * k),
            ("B", gk * gn, level.right, k * n),
            ("C", gm * gn, level.merge, m * n),
        ):
            moved = self.dtype.itemsize * times * size * (blocks + level.rank)
            label = f"{'x'.join(map(str, level.grid))}:{level.rank}"
            found.append(Stage(f"sums of {name}", 2 * times * size * sums.terms, moved, level=label))
        return [*found, *self.inner.stages(times * level.rank)]


FloatCore = FloatLeaf | FloatLevel


def float_core(
    levels: tuple[RingLevel, ...], sizes: Sizes, dtype: str, modulus: int, bounds: tuple[int, int], reduce: bool
) -> FloatCore:
    """Return the core of these levels.

    Raises:
        PlanError: a sum could exceed the exact range of the dtype.
    """
    if levels:
        return FloatLevel(levels, sizes, dtype, modulus, bounds, reduce)
    return FloatLeaf(sizes, dtype, modulus, bounds, reduce)


def half(modulus: int) -> int:
    """Return the largest magnitude of a residue from `combine.reduce_row`; 0 without a modulus."""
    return modulus // 2 + 2 if modulus else 0


def _each(sums: ExactMap, bound: int, modulus: int, limit: int) -> bool:
    """Return whether every multiple must be reduced before it is added."""
    if sums.norm * bound <= limit:
        return False
    if not modulus or sums.largest * bound > limit or sums.longest * half(modulus) > limit:
        raise PlanError(f"sums of blocks of entries up to {bound} exceed what is held exactly")
    return True

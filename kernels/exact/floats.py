"""Cores of exact products of integers stored as floats: BLAS below proven bounds, levels of schemes above it.

A float64 represents every integer up to 2^53, so a product whose partial sums stay below that is exact in any order
of additions. Modulo n it is divided along k into such parts, and the sums of blocks are reduced only if they could
exceed the bound. Source: Dumas, Giorgi, Pernet, Dense linear algebra over word-size prime fields (2008).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...errors import PlanError
from ..arrays import Matrix, Sizes
from ..cpu.executor import Core
from ..cpu.threads import parallel_rows, single_threaded_blas
from ..cpu.workspace import Arena, aligned
from ..planning.strategy import Stage
from .level import Blocks, ExactLevel, LevelArithmetic, Pair, block_sizes
from .schemes import ExactMap, RingMaps

LIMITS = {"float32": 1 << 24, "float64": 1 << 53}
"""The dtype represents every integer up to this magnitude."""

SHORT, PANEL_ROWS = 256, 128
"""For products of a smaller inner size, this many rows of A per thread are multiplied and reduced at once. Measured,
float32, 2048 modulo 1021, inner size 64: 0.28 s instead of 0.32 s; float64 takes 0.34 s.
"""


class FloatLeaf(Core):
    """One product of integers of magnitudes at most `bounds`.

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
        m, k, n = self.sizes
        rows = min(m, self._height(threads))
        return aligned(rows * n * self.dtype.itemsize) if self.depth < k else 0

    def compile(self) -> None:
        from .combine import add_reduced, reduce_rows

        one = np.zeros((1, 1), self.dtype)
        add_reduced(one, 2.0, one, 0, 1)
        reduce_rows(one, 2.0, 0, 1)

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1) -> None:
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


@dataclass(frozen=True)
class ArraySums(LevelArithmetic):
    """Arrays of integers stored as floats, or of words of bits. Sums of A, B and C are reduced by `moduli`; 0: not."""

    dtype: np.dtype[Any]
    moduli: tuple[int, int, int]

    def combine(self, role: int, sums: ExactMap, source: Blocks, target: Blocks, block: Pair, threads: int) -> None:
        from .combine import sum_blocks

        scale = sums.values.astype(self.dtype), self.dtype.type(self.moduli[role])
        terms = *source, *target, block, sums.starts, sums.places, *scale
        parallel_rows(lambda i, j: sum_blocks(*terms, i, j), block[0], threads)

    def products(self, workers: int) -> AbstractContextManager[object]:
        return single_threaded_blas() if workers > 1 else nullcontext()


FloatCore = FloatLeaf | ExactLevel


def float_core(
    levels: tuple[RingMaps, ...],
    sizes: Sizes,
    dtype: str,
    modulus: int,
    bounds: tuple[int, int],
    reduce: bool,
) -> FloatCore:
    """Return the core of these levels for entries of magnitudes at most `bounds`; `reduce`: the result is reduced.

    Raises:
        PlanError: a sum could exceed the exact range of the dtype, even after reduction or without a modulus.
    """
    if not levels:
        return FloatLeaf(sizes, dtype, modulus, bounds, reduce)
    level, *below = levels
    limit, block = LIMITS[dtype] - modulus, block_sizes(sizes, level.grid)

    def core_of(bounds: tuple[int, int], reduce: bool) -> FloatCore:
        return float_core(tuple(below), block, dtype, modulus, bounds, reduce)

    def require(largest: int) -> None:
        if largest > limit:
            raise PlanError(f"sums of blocks of entries up to {bounds} exceed what {dtype} holds exactly")

    sums = level.left.norm * bounds[0], level.right.norm * bounds[1]
    require(max(sums))
    pure = False
    try:
        inner = core_of((max(sums[0], 1), max(sums[1], 1)), False)
        pure = inner.pure and level.merge.norm * inner.bound <= limit
    except PlanError:
        if not modulus:
            raise
    if not pure:
        inner = core_of((half(modulus),) * 2, True) if modulus else inner
        require(level.merge.norm * inner.bound)
    of_sums, of_result = modulus * (not pure), modulus * (reduce or not pure)
    bound = half(modulus) if of_result else level.merge.norm * inner.bound
    arithmetic = ArraySums(np.dtype(dtype), (of_sums, of_sums, of_result))
    return ExactLevel(level, sizes, block, arithmetic, inner, bound, not of_result)


def half(modulus: int) -> int:
    """Return the largest magnitude of a residue from `combine.reduce_rows`; 0 without a modulus."""
    return modulus // 2 + 2 if modulus else 0

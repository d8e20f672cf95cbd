"""Cores of exact products of integers, over Z and modulo n: limbs, their products as floats, and their recombination.

A float64 represents every integer up to 2^53, so a product whose partial sums stay below that is exact in any order
of additions. Modulo n it is divided along k into such parts, and the sums of blocks are reduced only if they could
exceed the bound. Source: Dumas, Giorgi, Pernet, Dense linear algebra over word-size prime fields (2008).
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ...errors import PlanError
from ..arrays import Matrix, Sizes, read_only
from ..cpu.executor import Core
from ..cpu.threads import parallel_rows, single_threaded_blas
from ..cpu.workspace import Arena, aligned, empty_aligned
from ..planning.strategy import Stage
from ..request import PYTHON, WIDE
from ..ring import ExactRing
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
        blocks, froms = source
        terms = read_only(blocks), froms, *target, block, sums.starts, sums.places, *scale
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


LEAST_DEPTH = 512
"""Inner size of one BLAS product below which a third limb is used instead of two."""

SINGLE_DEPTH = 64
"""Inner size of one float32 BLAS product below which float64 is used. Measured: see SHORT."""

MOST_LIMBS = 6
"""Three limbs of 22 bits represent an int64, and 512 products of sums of two stay below 2^53; more leave room for the
sums of blocks of schemes.
"""


@dataclass(frozen=True)
class IntegerCore(Core):
    """One product of integers of magnitudes at most `bounds`, exact in `ring`.

    With one limb it is one float product; l limbs take l (l + 1) / 2 of them (Karatsuba), each exact below 2^53.

    Raises:
        PlanError: the result exceeds its dtype, or a sum of blocks the exact range of floats.
    """

    sizes: Sizes
    ring: ExactRing
    bounds: tuple[int, int]
    levels: tuple[RingMaps, ...] = ()
    out_dtype: str | None = None

    def __post_init__(self) -> None:
        if reason := overflow_reason(self.sizes, self.ring, self.bounds, self.out_dtype):
            raise PlanError(reason)
        _ = self.product  # checks the bounds now

    @cached_property
    def entry_bounds(self) -> tuple[int, int]:
        """Magnitudes of the entries after reduction."""
        return self.ring.magnitude(self.bounds[0]), self.ring.magnitude(self.bounds[1])

    @cached_property
    def limbs(self) -> int:
        """The fewest limbs for which a BLAS product reaches LEAST_DEPTH or the whole of k, and sums of blocks fit."""
        for limbs in range(self._least_limbs, MOST_LIMBS):
            try:
                self._product(limbs)
            except PlanError:
                continue
            return limbs
        return MOST_LIMBS

    @property
    def _least_limbs(self) -> int:
        if self._is_exact("float64", LEAST_DEPTH // 4):  # more products of one limb are cheaper than a second limb
            return 1
        return 2 if _limb_depth(self.entry_bounds, 2) >= min(LEAST_DEPTH, self.sizes[1]) else 3

    def _is_exact(self, dtype: str, depth: int) -> bool:
        """Return whether products of single limbs are exact in a dtype: of this inner size, over Z of all of k."""
        (first, second), k, modulus = self.entry_bounds, self.sizes[1], self.ring.modulus
        return (min(depth, k) if modulus else k) * first * second + 2 * modulus + 2 <= LIMITS[dtype]

    @cached_property
    def width(self) -> int:
        """Bits of a limb."""
        return _width(self.entry_bounds, self.limbs)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of limbs and products."""
        return self.product.dtype

    @property
    def slabs(self) -> int:
        """Number of matrices of limbs and of sums of two limbs, and of their products."""
        return self.limbs * (self.limbs + 1) // 2

    @cached_property
    def depth(self) -> int:
        """The inner size of the products that are recombined at once."""
        return self._depth(self.limbs)

    def _depth(self, limbs: int) -> int:
        return self.sizes[1] if limbs == 1 else min(self.sizes[1], _limb_depth(self.entry_bounds, limbs))

    @cached_property
    def product(self) -> FloatCore:
        """The product of one limb of A and one of B."""
        return self._product(self.limbs)

    def _product(self, limbs: int, depth: int = 0) -> FloatCore:
        m, _, n = self.sizes
        if limbs == 1:
            modulus, dtype = self.ring.modulus, "float32" if self._is_exact("float32", SINGLE_DEPTH) else "float64"
            return float_core(self.levels, self.sizes, dtype, modulus, self.entry_bounds, modulus > 0)
        most = _limb_sum(self.entry_bounds, limbs)
        return float_core(self.levels, (m, depth or self._depth(limbs), n), "float64", 0, (most, most), False)

    @property
    def _tail(self) -> FloatCore:
        """The product of the last columns of A, fewer than the others if the depth does not divide k."""
        rest = self.sizes[1] % self.depth
        return self._product(self.limbs, rest) if rest else self.product

    def _shapes(self, depth: int) -> list[tuple[int, int, int]]:
        """Return the shapes of the limbs of so many columns of A and rows of B, and of their products."""
        m, _, n = self.sizes
        return [(self.slabs, m, depth), (self.slabs, depth, n), (self.slabs, m, n)]

    def workspace(self, threads: int) -> int:
        own = sum(aligned(math.prod(shape) * self.dtype.itemsize) for shape in self._shapes(self.depth))
        inner = max(self.product.workspace(threads), self._tail.workspace(threads))
        m, _, n = self.sizes
        return own + inner + (aligned(8 * (2 * self.limbs - 1) * m * n) if self.out_dtype == PYTHON else 0)

    def compile(self) -> None:
        self.product.compile()
        one = np.zeros((1, 1), np.int64)
        # Run the same code on the smallest product with as many limbs.
        small = replace(self, sizes=(1, 1, 1), levels=())
        small.run(
            one, one, empty_integers((1, 1), self.out_dtype), Arena(np.zeros(small.workspace(1) + 64, np.uint8)), 1
        )

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1) -> None:
        """See `Core.run`; a and b are integers of any dtype."""
        k = self.sizes[1]
        for start in range(0, k, self.depth):
            part, memory = slice(start, min(start + self.depth, k)), arena.rest()
            left, right, products = (memory.array(shape, self.dtype) for shape in self._shapes(part.stop - start))
            self._split(a[:, part], left, threads)
            self._split(b[part], right, threads)
            core = self._tail if part.stop == k else self.product
            for slabs in zip(left, right, products, strict=True):
                core.run(*slabs, memory.rest(), threads)
            self._join(products, out, start > 0, memory, threads)

    def _split(self, matrix: Matrix, slabs: Any, threads: int) -> None:
        from .limbs import split_rows

        limbs, width, modulus = self.limbs, self.width, self.ring.modulus
        matrix = read_only(matrix)
        parallel_rows(lambda i, j: split_rows(matrix, limbs, width, modulus, slabs, i, j), len(matrix), threads)

    def _join(self, products: Any, out: Matrix, add: bool, arena: Arena, threads: int) -> None:
        from .limbs import join_rows, join_terms, join_wide

        limbs, width, modulus, m = self.limbs, self.width, self.ring.modulus, self.sizes[0]
        if self.out_dtype == WIDE:
            parallel_rows(lambda i, j: join_wide(products, limbs, width, add, out, i, j), m, threads)
        elif self.out_dtype == PYTHON:
            terms: Any = arena.rest().array((2 * limbs - 1, m, self.sizes[2]), np.dtype(np.int64))
            parallel_rows(lambda i, j: join_terms(products, limbs, terms, i, j), m, threads)
            total = sum(term.astype(object) * (1 << place * width) for place, term in enumerate(terms))
            out[...] = out + total if add else total
        else:
            parallel_rows(lambda i, j: join_rows(products, limbs, width, modulus, add, out, i, j), m, threads)

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        m, k, n = self.sizes
        parts, item = -(-k // self.depth), self.dtype.itemsize
        split = Stage("limbs", times * self.slabs * (m * k + k * n), times * (8 + item * self.slabs) * (m * k + k * n))
        moved = times * parts * m * n * (8 + item * self.slabs)
        joined = Stage("joined limbs", times * parts * self.slabs * m * n, moved)
        products = self.product.stages(times * (k // self.depth) * self.slabs)
        if k % self.depth:
            products += self._tail.stages(times * self.slabs)
        return [split, *products, joined]


def empty_integers(shape: tuple[int, ...], out_dtype: str | None) -> Matrix:
    """Return an array for a result: uninitialised, or of Python integers; the two words of int128 are a last axis."""
    if out_dtype == PYTHON:
        return np.zeros(shape, object)
    return empty_aligned((*shape, 2) if out_dtype == WIDE else shape, np.dtype(np.int64))


def overflow_reason(sizes: Sizes, ring: ExactRing, bounds: tuple[int, int], out_dtype: str | None) -> str | None:
    """Return the reason why a result over Z does not fit its dtype, or None."""
    if ring.modulus or out_dtype == PYTHON:
        return None
    most = sizes[1] * bounds[0] * bounds[1]
    bits = 127 if out_dtype == WIDE else 63
    if most < 1 << bits:
        return None
    mend = f'out_dtype="{PYTHON}"' if bits == 127 else f'out_dtype="{WIDE}" (two words) or "{PYTHON}"'
    return f"elements can reach {most:.3g}, beyond int{bits + 1}; ask for {mend}, or state a smaller max_abs"


def _width(bounds: tuple[int, int], limbs: int) -> int:
    """Return the bits of a limb, so that the last one is no larger than the others but for a carry."""
    return max(2, -(-(max(bounds).bit_length() + 1) // limbs))


def _limb_sum(bounds: tuple[int, int], limbs: int) -> int:
    """Return the largest magnitude of a limb and of a sum of two: all but the last are at most 2^(width - 1)."""
    width = _width(bounds, limbs)
    low, last = 1 << (width - 1), (max(bounds) >> width * (limbs - 1)) + 1
    return max(low + last, 2 * low if limbs > 2 else 0)


def _limb_depth(bounds: tuple[int, int], limbs: int) -> int:
    """Return the inner size up to which products of sums of two limbs stay below 2^53."""
    return LIMITS["float64"] // _limb_sum(bounds, limbs) ** 2

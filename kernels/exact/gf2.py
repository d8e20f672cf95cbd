"""Cores of products over GF(2): a leaf, and levels of schemes above it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..codegen.host import has_features
from ..cpu.threads import parallel_rows, parallel_tasks
from ..cpu.workspace import Arena, aligned
from ..planning.strategy import Stage
from .bits import LINE_WORDS, words_of
from .padding import padded, padded_shapes
from .schemes import ExactMap, RingLevel

Words = npt.NDArray[np.uint64]
Sizes = tuple[int, int, int]

WORDS = np.dtype(np.uint64)

WIDENED = 17 / 16
"""Maximum factor by which blocks are widened to rows of whole cache lines, which can be stored past the caches."""

AFFINE, TABLES = "affine", "tables"
"""The leaf kernels: the processor's bit-matrix instruction, and tables of sums of rows."""


def best_kernel() -> str:
    """Return the fastest leaf kernel that the processor supports."""
    return AFFINE if has_features("gfni", "avx512f", "avx512bw") else TABLES


OF_A_THREAD = 1 << 34
"""Minimum operations per thread: the speedup of two threads of a Xeon was 0.84 at 2048 cubed (0.85 ms), and 1.5 at
4096 cubed.
"""


@dataclass(frozen=True)
class BitLeaf:
    """One product m x k x n of words, by `kernel`; a `StagedCore`."""

    sizes: Sizes
    kernel: str

    @property
    def _packed(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        from .affine import BLOCK_ROWS, DEPTH_WORDS, ROW_TILES
        from .affine import WORDS as PANEL

        m, k, n = self.sizes
        depth = min(words_of(k), DEPTH_WORDS)
        return (-(-m // BLOCK_ROWS), depth, 8, ROW_TILES), (-(-words_of(n) // PANEL), 8 * depth, PANEL, 8)

    def workspace(self, threads: int) -> int:
        """See `Core.workspace`."""
        return sum(aligned(8 * math.prod(shape)) for shape in self._packed) if self.kernel == AFFINE else 0

    def compile(self) -> None:
        """See `StagedCore.compile`."""
        one = np.zeros((1, 1), np.uint64)
        small = BitLeaf((1, 1, 1), self.kernel)
        small.run(one, one, one.copy(), Arena(np.zeros(small.workspace(1), np.uint8)), 1)

    def run(self, a: Words, b: Words, out: Words, arena: Arena, threads: int = 1) -> None:
        """See `Core.run`."""
        threads = max(1, min(threads, 2 * math.prod(self.sizes) // OF_A_THREAD))
        if self.kernel == TABLES:
            from .tables import multiply_tables

            parallel_rows(lambda first, last: multiply_tables(a, b, out, first, last), self.sizes[0], min(threads, 64))
            return
        from .affine import DEPTH_WORDS

        (blocks, depth, *tile_a), (panels, _, *tile_b) = self._packed
        left = arena.array((blocks, depth, *tile_a), WORDS)
        right = arena.array((panels, 8 * depth, *tile_b), WORDS)
        for start in range(0, a.shape[1], DEPTH_WORDS):
            part = min(DEPTH_WORDS, a.shape[1] - start)
            some: Any = left.reshape(-1)[: blocks * part * math.prod(tile_a)].reshape(blocks, part, *tile_a)
            other: Any = right.reshape(-1)[: panels * 8 * part * math.prod(tile_b)].reshape(panels, 8 * part, *tile_b)
            piece_a, piece_b = a[:, start : start + part], b[64 * start : 64 * (start + part)]
            self._multiply_part((piece_a, piece_b, out), (some, other), start > 0, threads)

    def _multiply_part(self, matrices: Any, packed: Any, add: bool, threads: int) -> None:
        from .affine import multiply_packed, pack_a, pack_b

        (a, b, out), (left, right) = matrices, packed
        parallel_rows(lambda i, j: pack_a(a, left, i, j), len(left), threads)
        parallel_rows(lambda i, j: pack_b(b, right, i, j), len(right), threads)
        parallel_rows(lambda i, j: multiply_packed(left, right, out, add, i, j), len(left), threads)

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        """See `StagedCore.stages`."""
        m, k, n = self.sizes
        moved = times * (m * words_of(k) + k * words_of(n) + m * words_of(n)) * 8
        return [Stage(f"{times} products {m}x{k}x{n}", 2 * times * m * k * n, moved, product=self.sizes)]


class BitLevel:
    """One level of a scheme over GF(2), and all below it; a `StagedCore`.

    Sums of blocks are stored as slabs, then multiplied, then the products are summed: each step reads
    every block row once. Threads share every sum; each product is computed by one thread.
    """

    def __init__(self, levels: tuple[RingLevel, ...], sizes: Sizes, kernel: str) -> None:
        self.level, self.sizes = levels[0], sizes
        self.block = block_sizes(sizes, self.level.grid)
        below = levels[1:]
        self.inner: BitLevel | BitLeaf = BitLevel(below, self.block, kernel) if below else BitLeaf(self.block, kernel)

    @property
    def _shapes(self) -> list[tuple[int, int, int]]:
        m, k, n = self.block
        rank = self.level.rank
        return [(rank, m, words_of(k)), (rank, k, words_of(n)), (rank, m, words_of(n))]

    @property
    def _padded(self) -> list[tuple[int, int] | None]:
        """See `padded_shapes`; in words."""
        (m, k, n), (bm, bk, bn) = self.sizes, self.block
        return padded_shapes(((m, words_of(k)), (k, words_of(n))), ((bm, words_of(bk)), (bk, words_of(bn))), self.level)

    def workspace(self, threads: int) -> int:
        """See `Core.workspace`."""
        own = sum(aligned(8 * math.prod(shape)) for shape in self._shapes)
        padded = max(0 if shape is None else aligned(8 * math.prod(shape)) for shape in self._padded)
        return own + max(padded, min(threads, self.level.rank) * aligned(self.inner.workspace(1)))

    def compile(self) -> None:
        """See `StagedCore.compile`."""
        self.inner.compile()
        from .combine import pad_rows, xor_merge, xor_sums

        slab, matrix = np.zeros((1, 64, 1), np.uint64), np.zeros((64, 1), np.uint64)
        index = np.zeros(2, np.int64)
        pad_rows(matrix, matrix.copy(), 0, 1)
        xor_sums(matrix, (1, 1), (64, 1), index, index, slab, 0, 1)
        xor_merge(slab, (1, 1), (64, 1), index, index, matrix, 0, 1)

    def run(self, a: Words, b: Words, out: Words, arena: Arena, threads: int = 1) -> None:
        """See `Core.run`."""
        from .combine import xor_merge

        left, right, products = (arena.array(shape, WORDS) for shape in self._shapes)
        level, (m, k, n) = self.level, self.block
        gm, gk, gn = level.grid
        for matrix, shape, grid, block, sums, slabs in (
            (a, self._padded[0], (gm, gk), (m, words_of(k)), level.left, left),
            (b, self._padded[1], (gk, gn), (k, words_of(n)), level.right, right),
        ):
            # This uses the products' memory: they are computed after the sums.
            whole = matrix if shape is None else padded(matrix, arena.rest().array(shape, WORDS), threads)
            _add_blocks(whole, grid, block, sums, slabs, threads)
        workers = min(threads, level.rank)
        arenas = arena.rest().split(workers, self.inner.workspace(1))

        def multiply(r: int, worker: int) -> None:
            # A new view of the worker's memory: the last product allocated from its own.
            self.inner.run(left[r], right[r], products[r], arenas[worker].rest(), 1)

        parallel_tasks(multiply, level.rank, workers)
        merge = level.merge
        parallel_rows(
            lambda i, j: xor_merge(products, (gm, gn), (m, words_of(n)), merge.starts, merge.places, out, i, j),
            m,
            threads,
        )

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        """See `StagedCore.stages`."""
        level, (m, k, n) = self.level, self.block
        gm, gk, gn = level.grid
        found = []
        for name, blocks, sums, (rows, words), whole in (
            ("A", gm * gk, level.left, (m, words_of(k)), self._padded[0]),
            ("B", gk * gn, level.right, (k, words_of(n)), self._padded[1]),
            ("C", gm * gn, level.merge, (m, words_of(n)), None),
        ):
            # A padded copy is written and read; rows that are no whole cache lines are fetched before they are written.
            copied = 0 if whole is None else 2 * blocks
            read, written = (level.rank, blocks) if name == "C" else (blocks, level.rank)
            moved = read + copied + written * (2 if words % LINE_WORDS else 1)
            size = times * rows * words
            found.append(Stage(f"sums of {name}", 64 * size * sums.terms, 8 * size * moved, level=_label(level)))
        return [*found, *self.inner.stages(times * level.rank)]


def _add_blocks(
    matrix: Words, grid: tuple[int, int], block: tuple[int, int], sums: ExactMap, slabs: Any, threads: int
) -> None:
    """Compute slabs = the sums of the blocks of a matrix."""
    from .combine import xor_sums

    starts, places = sums.starts, sums.places
    parallel_rows(lambda i, j: xor_sums(matrix, grid, block, starts, places, slabs, i, j), block[0], threads)


def block_sizes(sizes: Sizes, grid: Sizes) -> Sizes:
    """Return the block sizes of a level over GF(2): k and n in whole words, unless the size is a single block."""
    m, k, n = sizes
    gm, gk, gn = grid
    return -(-m // gm), _whole_words(k, gk), _whole_words(n, gn)


def _whole_words(size: int, parts: int) -> int:
    if parts == 1:
        return size
    words = -(-words_of(size) // parts)
    aligned = -(-words // LINE_WORDS) * LINE_WORDS
    return 64 * (aligned if aligned <= WIDENED * words else words)


def _label(level: RingLevel) -> str:
    return f"{'x'.join(map(str, level.grid))}:{level.rank}"

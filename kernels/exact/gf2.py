"""Cores of products over GF(2): a leaf, and the arithmetic of levels above it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from ..arrays import Sizes, read_only
from ..codegen.host import has_features
from ..cpu.executor import Core
from ..cpu.threads import parallel_rows
from ..cpu.workspace import Arena, aligned
from ..planning.strategy import Stage
from .bits import LINE_WORDS, Words, words_of
from .integers import ArraySums
from .level import ExactLevel, LevelArithmetic
from .schemes import RingMaps

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
class BitLeaf(Core):
    """One product m x k x n of words, by `kernel`."""

    sizes: Sizes
    kernel: str

    def _packed(self, depth: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the shapes of packed A and B, of at most so many words of the inner size."""
        from .affine import BLOCK_ROWS, DEPTH_WORDS, ROW_TILES
        from .affine import WORDS as PANEL

        (m, _, n), depth = self.sizes, min(depth, DEPTH_WORDS)
        return (-(-m // BLOCK_ROWS), depth, 8, ROW_TILES), (-(-words_of(n) // PANEL), 8 * depth, PANEL, 8)

    def workspace(self, threads: int) -> int:
        packed = self._packed(words_of(self.sizes[1])) if self.kernel == AFFINE else ()
        return sum(aligned(8 * math.prod(shape)) for shape in packed)

    def compile(self) -> None:
        one = np.zeros((1, 1), np.uint64)
        small = BitLeaf((1, 1, 1), self.kernel)
        small.run(one, one, one.copy(), Arena(np.zeros(small.workspace(1), np.uint8)), 1)

    def run(self, a: Words, b: Words, out: Words, arena: Arena, threads: int = 1) -> None:
        threads = max(1, min(threads, 2 * math.prod(self.sizes) // OF_A_THREAD))
        a, b = read_only(a), read_only(b)
        if self.kernel == TABLES:
            from .tables import multiply_tables

            parallel_rows(partial(multiply_tables, a, b, out), self.sizes[0], min(threads, 64))
            return
        from .affine import DEPTH_WORDS, multiply_packed, pack_a, pack_b

        for start in range(0, a.shape[1], DEPTH_WORDS):
            stop, memory = start + DEPTH_WORDS, arena.rest()
            left, right = (memory.array(shape, WORDS) for shape in self._packed(a.shape[1] - start))
            parallel_rows(partial(pack_a, a[:, start:stop], left), len(left), threads)
            parallel_rows(partial(pack_b, b[64 * start : 64 * stop], right), len(right), threads)
            parallel_rows(partial(multiply_packed, left, right, out, start > 0), len(left), threads)

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        m, k, n = self.sizes
        moved = times * (m * words_of(k) + k * words_of(n) + m * words_of(n)) * 8
        return [Stage(f"{times} products {m}x{k}x{n}", 2 * times * m * k * n, moved, product=self.sizes)]


class Bits(ArraySums):
    """Words of bits: sums are XORs, whose coefficients, all 1, are not read."""

    per_term = 64

    def __init__(self) -> None:
        super().__init__(WORDS, (0, 0, 0))

    def width(self, cols: int) -> int:
        return words_of(cols)

    def passes(self, read: int, written: int, copied: int, width: int) -> int:
        """See `LevelArithmetic.passes`: rows that are no whole cache lines are fetched before they are written."""
        return read + copied + written * (2 if width % LINE_WORDS else 1)


Leaf = TypeVar("Leaf")


def bit_core(
    levels: tuple[RingMaps, ...], sizes: Sizes, leaf: Callable[[Sizes], Leaf], arithmetic: LevelArithmetic
) -> ExactLevel | Leaf:
    """Return the core of these levels, of arrays or of tensors, above products that `leaf` makes for their sizes."""
    if not levels:
        return leaf(sizes)
    (m, k, n), (gm, gk, gn) = sizes, levels[0].grid
    block = -(-m // gm), _whole_words(k, gk), _whole_words(n, gn)
    return ExactLevel(levels[0], sizes, block, arithmetic, bit_core(levels[1:], block, leaf, arithmetic))


def _whole_words(size: int, parts: int) -> int:
    """Return the size of a block of so many parts in whole words, unless the size is a single block."""
    if parts == 1:
        return size
    words = -(-words_of(size) // parts)
    aligned = -(-words // LINE_WORDS) * LINE_WORDS
    return 64 * (aligned if aligned <= WIDENED * words else words)

"""Products of int8 matrices into int32: sums in int8, one product at a time, exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...schemes_db.program import Coefficient, ProductKind, Program
from ..arrays import Matrix, Sizes
from ..codegen.maps import expanded, maps_of
from ..planning.strategy import Stage
from .workspace import Arena, aligned

Place = tuple[int, int]
Terms = list[tuple[Place, Coefficient]]

INT8, INT32, FLOAT32 = np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.float32)

DEPTH = 1 << 10
"""Inner size up to which float32 products of int8 are exact: 2^10 times 2^7 times 2^7 is 2^24, in any order."""


@dataclass(frozen=True)
class Int8Leaf:
    """One product by float32 BLAS, in chunks of the inner size; a `StagedCore`.

    Source: every integer up to 2^24 is a float32, so no partial sum of a chunk is rounded.
    """

    sizes: Sizes

    @property
    def _shapes(self) -> list[tuple[Sizes, np.dtype[Any]]]:
        m, k, n = self.sizes
        depth = min(k, DEPTH)
        more = [((1, m, n), INT32)] if k > DEPTH else []
        return [((1, m, depth), FLOAT32), ((1, depth, n), FLOAT32), ((1, m, n), FLOAT32), *more]

    def workspace(self, threads: int) -> int:
        return sum(aligned(rows * cols * dtype.itemsize) for (_, rows, cols), dtype in self._shapes)

    def compile(self) -> None:
        """See `StagedCore.compile`: there is no code to compile."""

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1) -> None:
        left, right, product, *more = (arena.array(shape[1:], dtype) for shape, dtype in self._shapes)
        inner = self.sizes[1]
        for start in range(0, inner, DEPTH):
            depth = min(DEPTH, inner - start)
            some, other = left[:, :depth], right[:depth]
            some[...], other[...] = a[:, start : start + depth], b[start : start + depth]
            np.matmul(some, other, out=product)
            if not start:
                out[...] = product
            else:
                # Added as integers: an overflow of those wraps around and cancels later, one of floats would not.
                more[0][...] = product
                np.add(out, more[0], out=out)

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        m, k, n = self.sizes
        moved = m * k + k * n + INT32.itemsize * m * n
        return [Stage(f"{times} products {m}x{k}x{n}", 2 * times * m * k * n, times * moved, product=self.sizes)]


class Int8Level:
    """A level of a general program on int8 matrices, and all levels below it; a `StagedCore`.

    Every sum is computed from the blocks directly. Partial sums may overflow int8, which is harmless
    modulo 2^8; the caller must ensure that the final sums do not (`range_reason`).
    """

    def __init__(self, program: Program, sizes: Sizes) -> None:
        maps, inner = maps_of(program), dict(program.inner)
        m, k, n = (-(-size // parts) for size, parts in zip(sizes, program.target.shape, strict=True))
        self.block: Sizes = (m, k, n)
        self._steps: list[tuple[Terms, Terms, Terms]] = []
        feeds: list[Terms] = [[] for _ in maps.products]
        for block, place in enumerate(maps.stored):
            for product, coefficient in expanded(maps.merge, block):
                feeds[product].append((place, coefficient))
        for r in range(len(maps.products)):
            left = [(maps.left_blocks[i], value) for i, value in expanded(maps.left, maps.left_of[r])]
            right = [(maps.right_blocks[i], value) for i, value in expanded(maps.right, maps.right_of[r])]
            self._steps.append((left, right, feeds[r]))
        nested = inner.get(ProductKind.FULL)
        self._below: Int8Level | Int8Leaf = Int8Leaf(self.block) if nested is None else Int8Level(nested, self.block)
        self._scaled = any(abs(value) != 1 for step in self._steps for terms in step for _, value in terms)

    @property
    def _shapes(self) -> list[tuple[tuple[int, int], Any]]:
        """The shapes of the buffers: left sum, right sum, product, and two for scaling if a coefficient is not +-1."""
        m, k, n = self.block
        shapes = [((m, k), INT8), ((k, n), INT8), ((m, n), INT32)]
        return shapes + [((1, max(m * k, k * n)), INT8), ((1, m * n), INT32)] * self._scaled

    def workspace(self, threads: int) -> int:
        own = sum(aligned(rows * cols * dtype.itemsize) for (rows, cols), dtype in self._shapes)
        return own + self._below.workspace(threads)

    def compile(self) -> None:
        """See `StagedCore.compile`: there is no code to compile."""

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1) -> None:
        left, right, product, *scaled = (arena.array(shape, dtype) for shape, dtype in self._shapes)
        narrow, wide = scaled or (None, None)
        out[...] = 0
        for lefts, rights, feeds in self._steps:
            for matrix, terms, buffer in ((a, lefts, left), (b, rights, right)):
                buffer[...] = 0
                for place, coefficient in terms:
                    _add(buffer, _block(matrix, place, buffer.shape), coefficient, narrow)
            self._below.run(left, right, product, arena.rest(), threads)
            for place, coefficient in feeds:
                _add(_block(out, place, product.shape), product, coefficient, wide)

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        m, k, n = self.block
        sizes = (m * k, k * n, m * n * INT32.itemsize)
        counts = [sum(len(step[role]) for step in self._steps) for role in range(3)]
        # Every term reads a block, and reads and writes the sum it is added to.
        flops = times * (counts[0] * m * k + counts[1] * k * n + counts[2] * m * n)
        moved = times * sum(3 * count * size for count, size in zip(counts, sizes, strict=True))
        return [Stage("sums", flops, moved), *self._below.stages(times * len(self._steps))]


def _block(matrix: Matrix, place: Place, shape: tuple[int, ...]) -> Matrix:
    """Return a block, clipped at the edge of the matrix."""
    (p, q), (rows, cols) = place, shape
    return matrix[p * rows : (p + 1) * rows, q * cols : (q + 1) * cols]


def _add(total: Matrix, block: Matrix, coefficient: Coefficient, scaled: Matrix | None) -> None:
    """Add a multiple of the block to the common part of the two, modulo two to the number of bits."""
    rows, cols = (min(sizes) for sizes in zip(total.shape, block.shape, strict=True))
    total, block = total[:rows, :cols], block[:rows, :cols]
    if abs(coefficient) == 1:
        (np.add if coefficient == 1 else np.subtract)(total, block, out=total)
        return
    assert scaled is not None  # allocated for exactly these coefficients
    half = 1 << (8 * total.itemsize - 1)
    factor = total.dtype.type((int(coefficient) + half) % (2 * half) - half)
    multiple = scaled.ravel()[: rows * cols].reshape(rows, cols)
    np.multiply(block, factor, out=multiple)
    np.add(total, multiple, out=total)

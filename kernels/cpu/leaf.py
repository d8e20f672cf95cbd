"""The full products at the bottom of all levels: one GEMM each, of int8 in chunks.

Partial sums of blocks of int8 may overflow it, and their products int32, which is harmless modulo 2^8 and 2^32; the
caller must ensure that the final ones do not (`range_reason`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Matrix, Sizes
from ..dtypes import dtype_of
from ..planning.strategy import Stage
from ..ranges import ranges
from ..request import INT8
from .blas import NUMPY, Backend
from .executor import Core
from .threads import parallel_tasks
from .workspace import Arena, aligned

Piece = tuple[Matrix, Matrix, Matrix]


INT32, FLOAT32 = np.dtype(np.int32), np.dtype(np.float32)

DEPTH = 1 << 10
"""Inner size up to which float32 products of int8 are exact: 2^10 times 2^7 times 2^7 is 2^24, in any order."""


@dataclass(frozen=True)
class Leaf(Core):
    """One product by BLAS.

    With `shared`, BLAS runs on the calling thread, and the threads passed to `run` share the longer side of C.
    int8 is multiplied by float32 BLAS, in chunks of the inner size. Source: every integer up to 2^24 is a float32, so
    no partial sum of a chunk is rounded.
    """

    sizes: Sizes
    dtype: str = "float32"
    blas: Backend = NUMPY
    shared: bool = False

    @property
    def _shapes(self) -> list[tuple[tuple[int, int], np.dtype[Any]]]:
        """The buffers of an int8 product: chunks of A and B and their product, and the latter as integers."""
        (m, k, n), depth = self.sizes, min(self.sizes[1], DEPTH)
        if self.dtype != INT8:
            return []
        more = [((m, n), INT32)] if k > DEPTH else []
        return [((m, depth), FLOAT32), ((depth, n), FLOAT32), ((m, n), FLOAT32), *more]

    def workspace(self, threads: int) -> int:
        return sum(aligned(rows * cols * dtype.itemsize) for (rows, cols), dtype in self._shapes)

    @property
    def flops(self) -> int:
        """Number of operations, in real numbers."""
        m, k, n = self.sizes
        return 2 * dtype_of(self.dtype).parts ** 2 * m * k * n

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        (m, k, n), item = self.sizes, dtype_of(self.dtype).numpy.itemsize
        moved = (m * k + k * n) * item + m * n * (INT32.itemsize if self.dtype == INT8 else item)
        return [Stage(f"{times} products {m}x{k}x{n}", times * self.flops, times * moved, product=self.sizes)]

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena | None = None, threads: int = 1) -> None:
        if self.dtype == INT8:
            assert arena is not None
            self._run_int8(a, b, out, arena)
        elif self.shared and threads > 1:
            pieces = list(_pieces(a, b, out, threads))
            parallel_tasks(lambda i, _: self.blas.multiply(*pieces[i], self.dtype), len(pieces), threads)
        else:
            self.blas.multiply(a, b, out, self.dtype)

    def _run_int8(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena) -> None:
        left, right, product, *more = (arena.array(shape, dtype) for shape, dtype in self._shapes)
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


def _pieces(a: Matrix, b: Matrix, out: Matrix, parts: int) -> Iterator[Piece]:
    """Yield products that make up this one; they write disjoint parts of `out`."""
    rows, cols = out.shape
    for some in (slice(*one) for one in ranges(max(rows, cols), parts)):
        yield (a[some], b, out[some]) if rows > cols else (a, b[:, some], out[:, some])

"""Products of int8 matrices into int32, exact: the leaf of levels whose sums are in int8.

Partial sums of blocks may overflow int8, and products int32, which is harmless modulo 2^8 and 2^32; the caller must
ensure that the final ones do not (`range_reason`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Matrix, Sizes
from ..planning.strategy import Stage
from .workspace import Arena, aligned

INT32, FLOAT32 = np.dtype(np.int32), np.dtype(np.float32)

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

    @property
    def flops(self) -> int:
        """Number of operations."""
        m, k, n = self.sizes
        return 2 * m * k * n

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        m, k, n = self.sizes
        moved = m * k + k * n + INT32.itemsize * m * n
        return [Stage(f"{times} products {m}x{k}x{n}", times * self.flops, times * moved, product=self.sizes)]

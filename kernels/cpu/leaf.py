"""The full products at the bottom of all levels: one GEMM each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..arrays import Matrix, Sizes
from ..dtypes import dtype_of
from ..planning.strategy import Stage
from .blas import NUMPY, Backend
from .threads import parallel_tasks
from .workspace import Arena

Piece = tuple[Matrix, Matrix, Matrix]


@dataclass(frozen=True)
class Leaf:
    """One product by BLAS; a `StagedCore`.

    With `shared`, BLAS runs on the calling thread, and the threads passed to `run` share the longer side of C.
    """

    sizes: Sizes
    dtype: str = "float32"
    blas: Backend = NUMPY
    shared: bool = False

    def workspace(self, threads: int) -> int:
        return 0

    def compile(self) -> None:
        """See `StagedCore.compile`: there is no code to compile."""

    @property
    def flops(self) -> int:
        """Number of operations, in real numbers."""
        m, k, n = self.sizes
        return 2 * dtype_of(self.dtype).parts ** 2 * m * k * n

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        m, k, n = self.sizes
        moved = (m * k + k * n + m * n) * dtype_of(self.dtype).numpy.itemsize
        return [Stage(f"{times} products {m}x{k}x{n}", times * self.flops, times * moved, product=self.sizes)]

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena | None = None, threads: int = 1) -> None:
        if not self.shared or threads == 1:
            self.blas.multiply(a, b, out, self.dtype)
            return
        pieces = list(_pieces(a, b, out, threads))
        parallel_tasks(lambda i, _: self.blas.multiply(*pieces[i], self.dtype), len(pieces), threads)


def _pieces(a: Matrix, b: Matrix, out: Matrix, parts: int) -> Iterator[Piece]:
    """Yield products that make up this one; they write disjoint parts of `out`."""
    rows, cols = out.shape
    parts = min(parts, max(rows, cols))
    for i in range(parts):
        if rows > cols:
            some = slice(rows * i // parts, rows * (i + 1) // parts)
            yield a[some], b, out[some]
        else:
            some = slice(cols * i // parts, cols * (i + 1) // parts)
            yield a, b[:, some], out[:, some]

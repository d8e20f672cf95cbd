"""The products at the bottom: a GEMM, or the strips that hold one triangle of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from ...schemes_db.program import ProductKind
from .blas import NUMPY, Backend
from .threads import over_tasks
from .workspace import Arena

Matrix = npt.NDArray[Any]
Piece = tuple[Matrix, Matrix, Matrix]

STRIP = 128
"""Fewest rows of a strip: thinner ones waste less of the triangle but more of BLAS."""

SOME_STRIPS, MOST_STRIPS = 8, 16
"""Past the first, strips get twice as high before they get more. Measured, float32 512 to 4096, one core."""


def strips(size: int) -> Iterator[tuple[int, int]]:
    """The ranges that a triangle of this size is cut into."""
    count = max(1, min(size // STRIP, max(SOME_STRIPS, size // (2 * STRIP)), MOST_STRIPS))
    for i in range(count):
        yield size * i // count, size * (i + 1) // count


def worked_fraction(kind: ProductKind, size: int) -> float:
    """The part of a full product's arithmetic that the strips of a half product take."""
    if not kind.half:
        return 1.0
    return sum((stop - start) * stop for start, stop in strips(size)) / size**2


@dataclass(frozen=True)
class Leaf:
    """One product by BLAS; a `Core`.

    A half-out leaf writes the strips that cover the wanted triangle and leaves the rest of `out` as
    it was; a half-left or half-right leaf never reads the strips that its triangular operand lacks,
    but takes the diagonal ones as they are: their unused triangle must hold zeros. Where it is
    `shared`, BLAS works on the calling thread, and the threads that it is given share the pieces.
    """

    kind: ProductKind = ProductKind.FULL
    dtype: str = "float32"
    blas: Backend = NUMPY
    shared: bool = False

    def workspace(self, threads: int) -> int:
        """See `Core.workspace`."""
        return 0

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena | None = None, threads: int = 1) -> None:
        """out = a b, or the wanted part of it."""
        parts = threads if self.shared else 1
        if parts == 1 and not self.kind.half:
            self.blas.multiply(a, b, out, self.dtype)
            return
        pieces = list(self._pieces(a, b, out, parts))

        def work(i: int, worker: int) -> None:
            self.blas.multiply(*pieces[i], self.dtype)

        over_tasks(work, len(pieces), parts)

    def _pieces(self, a: Matrix, b: Matrix, out: Matrix, parts: int) -> Iterator[Piece]:
        """Products that make up this one; they write different parts of `out`."""
        side, upper = self.kind.side, self.kind.of_upper
        rows, cols = out.shape
        if side == "full":
            parts = min(parts, max(rows, cols))
            for i in range(parts):
                if rows > cols:
                    some = slice(rows * i // parts, rows * (i + 1) // parts)
                    yield a[some], b, out[some]
                else:
                    some = slice(cols * i // parts, cols * (i + 1) // parts)
                    yield a, b[:, some], out[:, some]
        elif side == "out":
            for start, stop in strips(rows):
                wanted = slice(start, None) if upper else slice(None, stop)
                yield a[start:stop], b[:, wanted], out[start:stop, wanted]
        elif side == "left":
            for start, stop in strips(rows):
                inner = slice(start, None) if upper else slice(None, stop)
                yield a[start:stop, inner], b[inner], out[start:stop]
        else:
            for start, stop in strips(cols):
                inner = slice(None, stop) if upper else slice(start, None)
                yield a[:, inner], b[inner, start:stop], out[:, start:stop]

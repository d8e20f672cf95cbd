"""The products at the bottom: a GEMM, or the strips that hold one triangle of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...schemes_db.program import ProductKind
from ..workspace import Arena

Matrix = npt.NDArray[Any]

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
    """One product by BLAS (int64: by numpy's own loops).

    A half-out leaf writes the strips that cover the wanted triangle and leaves the rest of `out` as
    it was; a half-left or half-right leaf never reads the strips that its triangular operand lacks,
    but takes the diagonal ones as they are: their unused triangle must hold zeros.
    """

    kind: ProductKind = ProductKind.FULL

    workspace = 0

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena | None = None) -> None:
        """out = a b, or the wanted part of it."""
        side, upper = self.kind.side, self.kind.of_upper
        if side == "full":
            np.matmul(a, b, out=out)
        elif side == "out":
            for start, stop in strips(out.shape[0]):
                cols = slice(start, None) if upper else slice(None, stop)
                np.matmul(a[start:stop], b[:, cols], out=out[start:stop, cols])
        elif side == "left":
            for start, stop in strips(out.shape[0]):
                inner = slice(start, None) if upper else slice(None, stop)
                np.matmul(a[start:stop, inner], b[inner], out=out[start:stop])
        else:
            for start, stop in strips(out.shape[1]):
                inner = slice(None, stop) if upper else slice(start, None)
                np.matmul(a[:, inner], b[inner, start:stop], out=out[:, start:stop])

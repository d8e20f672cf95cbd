"""Triangular products by plain BLAS: strips that cover the triangle, or everything and a cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.symmetry import Triangle
from ..dtypes import dtype_of
from ..planning.strategy import Stage
from .workspace import Arena, aligned

Matrix = npt.NDArray[Any]
Sizes = tuple[int, int, int]

STRIP, MOST_STRIPS = 128, 16
"""Rows of a strip: thinner ones waste less of the triangle but more of BLAS. Measured, float32, two threads."""

TASK_STRIP, MOST_TASK_STRIPS = 128, 8
"""The same where one thread works the product."""


def task_strips(size: int) -> int:
    """How many strips a triangle of this size is cut into for one thread."""
    return max(1, min(size // TASK_STRIP, MOST_TASK_STRIPS))


def ranges(size: int, count: int) -> Iterator[tuple[int, int]]:
    """`count` ranges of nearly one length that cover 0 <= i < size; empty ones are left out."""
    for i in range(count):
        start, stop = size * i // count, size * (i + 1) // count
        if start < stop:
            yield start, stop


def worked_fraction(size: int, count: int) -> float:
    """The part of the full product's arithmetic that so many strips take."""
    return sum((stop - start) * stop for start, stop in ranges(size, count)) / size**2 if size else 0.0


def check_triangle(triangle: Triangle, sizes: Sizes) -> None:
    """That the triangular matrix of a product of these sizes is square.

    Raises:
        PlanError: it is not.
    """
    m, k, n = sizes
    rows, cols = {"left": (m, k), "right": (k, n), "out": (m, n)}[triangle.side]
    if rows != cols:
        name = {"left": "a", "right": "b", "out": "the product"}[triangle.side]
        raise PlanError(f"{name} is triangular and must be square, but it is {rows} x {cols}")


def strip_count(size: int) -> int:
    """How many strips a triangle of this size is cut into for all threads; one is the whole product, cut afterwards."""
    return max(1, min(size // STRIP, MOST_STRIPS))


def cut(matrix: Matrix, upper: bool) -> None:
    """Zero what lies outside the triangle, in place."""
    for start, stop in ranges(len(matrix), max(1, len(matrix) // STRIP)):
        clear_strip(matrix, start, stop, upper)


def clear_strip(matrix: Matrix, start: int, stop: int, upper: bool) -> None:
    """Zero what lies outside the triangle in rows start <= i < stop of a square matrix, in place."""
    if upper:
        matrix[start:stop, :start] = 0
    else:
        matrix[start:stop, stop:] = 0
    block = matrix[start:stop, start:stop]
    # Not a product with ones and zeros: what is cut away may be NaN.
    block[_outside(stop - start, upper)] = 0


def _outside(size: int, upper: bool) -> npt.NDArray[np.bool_]:
    mask = np.tri(size, k=-1 if upper else 0, dtype=bool)
    return mask if upper else ~mask


def has_stray(matrix: Matrix, upper: bool) -> bool:
    """Whether a square matrix has anything but zeros outside its triangle; NaN and -0.0 count as something."""
    # As bits: comparing floats would pass over the memory several times.
    bits = matrix.view(np.dtype(f"u{matrix.itemsize}")) if matrix.itemsize <= 8 else matrix
    size = len(bits)
    for start in range(0, size, _STRAY_ROWS):
        stop = min(start + _STRAY_ROWS, size)
        if bits[start:stop, start:stop][_outside(stop - start, upper)].any():
            return True
        far = bits[start:stop, :start] if upper else bits[start:stop, stop:]
        if far.size and (far.max() if bits is not matrix else far.any()):
            return True
    return False


_STRAY_ROWS = 64


@dataclass(frozen=True)
class Strips:
    """A triangular product in `count` strips, one GEMM each; a `Core`.

    With `tidy` it may stand alone: garbage outside an operand's triangle is never used, and outside
    the wanted triangle the product comes out zero. Without, as the leaf of a scheme, both are the
    scheme's own care. A right triangle is worked as the left one of the transposed product.
    """

    triangle: Triangle
    sizes: Sizes
    dtype: str
    count: int
    tidy: bool = True

    def __post_init__(self) -> None:
        check_triangle(self.triangle, self.sizes)

    def workspace(self, threads: int = 1) -> int:
        """See `Core.workspace`."""
        if self.triangle.side == "out" or not self.tidy:
            return 0
        size = self.sizes[1]
        return aligned(-(-size // self.count) * size * dtype_of(self.dtype).numpy.itemsize)

    @property
    def flops(self) -> int:
        """Operations of the GEMMs, in real numbers."""
        m, k, n = self.sizes
        size = n if self.triangle.side == "right" else m
        return int(2 * dtype_of(self.dtype).parts ** 2 * m * k * n * worked_fraction(size, self.count))

    def stages(self, times: int = 1) -> list[Stage]:
        """What `times` runs cost, without seconds."""
        m, k, n = self.sizes
        size = n if self.triangle.side == "right" else m
        strip = -(-size // self.count)
        # The mean strip: half of the inner or of the outer size is there.
        mean = {"out": (strip, k, -(-n // 2)), "left": (strip, -(-k // 2), n), "right": (m, -(-k // 2), strip)}
        moved = (m * k + k * n + m * n) * dtype_of(self.dtype).numpy.itemsize
        name = f"{times * self.count} strips of {strip} of {m}x{k}x{n}"
        return [Stage(name, times * self.flops, times * moved, product=mean[self.triangle.side])]

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena | None = None, threads: int = 1) -> None:
        """out = a b, or the wanted triangle of it."""
        upper = self.triangle.upper
        if self.triangle.side == "right":
            a, b, out, upper = b.T, a.T, out.T, not upper
        for start, stop in ranges(len(out), self.count):
            rows = slice(start, stop)
            reach = slice(start, None) if upper else slice(None, stop)
            if self.triangle.side == "out":
                np.matmul(a[rows], b[:, reach], out=out[rows, reach])
                if self.tidy:
                    clear_strip(out, start, stop, upper)
            else:
                np.matmul(self._clean(a, start, stop, reach, upper, arena), b[reach], out=out[rows])

    def _clean(self, a: Matrix, start: int, stop: int, reach: slice, upper: bool, arena: Arena | None) -> Matrix:
        """Rows of a triangular operand, as they stand or, where there is something outside its triangle, as a copy."""
        strip = a[start:stop, reach]
        diagonal = slice(None, stop - start) if upper else slice(start, stop)
        if not self.tidy or not has_stray(strip[:, diagonal], upper):
            return strip
        if arena is None:
            raise PlanError("a product that cleans its operand needs an arena")
        copy = arena.rest().array(strip.shape, a.dtype)
        copy[...] = strip
        copy[:, diagonal][_outside(stop - start, upper)] = 0
        return copy

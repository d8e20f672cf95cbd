"""Products with one triangular matrix: strips that cover the triangle, or two triangles and the square between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...schemes_db.symmetry import Triangle
from ..arrays import Matrix, Sizes
from ..dtypes import dtype_of
from ..planning.strategy import Stage
from ..ranges import ranges
from .blas import NUMPY, Backend
from .executor import Core
from .leaf import Leaf, Piece
from .threads import parallel_tasks
from .workspace import Arena, aligned

STRIP = 128
"""Minimum rows of a strip: thinner ones waste less of the triangle but run at a lower BLAS rate."""

MOST_STRIPS = 16
"""Maximum number of strips of a product that all threads compute. Measured, float32, two threads."""

MOST_TASK_STRIPS = 8
"""Maximum number of strips of a product that one thread computes."""

LEAF_STRIPS = 8
"""Above this number, strips of a level's half products double in height before their number grows, up to MOST_STRIPS.

Measured, float32 512 to 4096, one core.
"""


def strip_count(size: int, most: int = MOST_STRIPS) -> int:
    """Return the number of strips of a triangle of this size, at most so many: MOST_STRIPS for all threads."""
    return max(1, min(size // STRIP, most))


def leaf_strips(size: int) -> int:
    """Return the number of strips of a triangle of this size at the bottom of a level, for one thread or for all."""
    return strip_count(size, min(max(LEAF_STRIPS, size // (2 * STRIP)), MOST_STRIPS))


def worked_fraction(size: int, count: int) -> float:
    """Return the fraction of the full product's arithmetic that so many strips of a triangle of this size take."""
    return sum((stop - start) * stop for start, stop in ranges(size, count)) / size**2 if size else 0.0


def zero_outside_triangle(matrix: Matrix, upper: bool) -> None:
    """Zero the elements outside the triangle, in place."""
    for start, stop in ranges(len(matrix), max(1, len(matrix) // STRIP)):
        zero_outside_strip(matrix, start, stop, upper)


def zero_outside_strip(matrix: Matrix, start: int, stop: int, upper: bool) -> None:
    """Zero the elements outside the triangle in rows start <= i < stop of a square matrix, in place."""
    if upper:
        matrix[start:stop, :start] = 0
    else:
        matrix[start:stop, stop:] = 0
    block = matrix[start:stop, start:stop]
    # Not a product with ones and zeros: the elements outside may be NaN.
    block[outside(stop - start, upper)] = 0


def outside(size: int, upper: bool) -> npt.NDArray[np.bool_]:
    """Return the mask of the elements of a square matrix that are outside its triangle."""
    mask = np.tri(size, k=-1 if upper else 0, dtype=bool)
    return mask if upper else ~mask


def has_nonzero_outside_triangle(matrix: Matrix, upper: bool) -> bool:
    """Return whether a square matrix has any nonzero bits outside its triangle; NaN and -0.0 count."""
    # Compared as bits: comparing floats would read the memory several times.
    bits = matrix.view(np.dtype(f"u{matrix.itemsize}")) if matrix.itemsize <= 8 else matrix
    size = len(bits)
    for start in range(0, size, _CHECKED_ROWS):
        stop = min(start + _CHECKED_ROWS, size)
        if bits[start:stop, start:stop][outside(stop - start, upper)].any():
            return True
        far = bits[start:stop, :start] if upper else bits[start:stop, stop:]
        if far.size and (far.max() if bits is not matrix else far.any()):
            return True
    return False


_CHECKED_ROWS = 64


BASE = 128
"""Largest number of rows of a triangle that is not halved. Measured, float32, one and two threads."""


@dataclass(frozen=True)
class HalfProduct(Core):
    """A product with one triangular operand, or of which only one triangle is wanted.

    A triangle is computed as `strips` GEMMs; a wanted one of more than `base` rows (None: any) as two halves and the
    square between them. A right triangle is computed as the left one of the transposed product.

    With `clean` nonzeros outside an operand's triangle are ignored, and the result is zero outside a wanted
    triangle. Without, as the leaf of a scheme, the diagonal strips of an operand must be zero outside the
    triangle, and outside a wanted one the result is undefined: so it is with `base`. With `shared` (never with
    `clean`), BLAS runs on the calling thread, and the threads passed to `run` share the strips.
    """

    triangle: Triangle
    sizes: Sizes
    dtype: str
    strips: int = 1
    base: int | None = None
    clean: bool = True
    blas: Backend = NUMPY
    shared: bool = False

    @cached_property
    def _parts(self) -> Halves | None:
        """The halves of a wanted triangle; None if it is not halved."""
        m, k, _ = self.sizes
        half = m // 2
        if self.base is None or m <= self.base or half == 0 or self.triangle.side != "out":
            return None
        first, second = (replace(self, sizes=(size, k, size)) for size in (half, m - half))
        far, near = (half, m - half) if self.triangle.upper else (m - half, half)
        return first, Leaf((far, k, near), self.dtype, self.blas), second

    @property
    def _size(self) -> int:
        """Rows of the triangle."""
        return self.sizes[2] if self.triangle.side == "right" else self.sizes[0]

    def workspace(self, threads: int = 1) -> int:
        if self.triangle.side == "out" or not self.clean:
            return 0
        return aligned(-(-self._size // self.strips) * self._size * dtype_of(self.dtype).numpy.itemsize)

    @cached_property
    def flops(self) -> int:
        """Operations of the GEMMs, in real numbers."""
        if self._parts is not None:
            return sum(part.flops for part in self._parts)
        m, k, n = self.sizes
        return int(2 * dtype_of(self.dtype).parts ** 2 * m * k * n * worked_fraction(self._size, self.strips))

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        """See `Core.stages`: the strips. Triangles that are halved are products of a level, which has their stages."""
        m, k, n = self.sizes
        strip = -(-self._size // self.strips)
        # The mean strip has half of the inner or of the outer size.
        mean = {"out": (strip, k, -(-n // 2)), "left": (strip, -(-k // 2), n), "right": (m, -(-k // 2), strip)}
        moved = (m * k + k * n + m * n) * dtype_of(self.dtype).numpy.itemsize
        name = f"{times * self.strips} strips of {strip} of {m}x{k}x{n}"
        return [Stage(name, times * self.flops, times * moved, product=mean[self.triangle.side])]

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1) -> None:
        if self._parts is not None:
            self._run_halves(self._parts, a, b, out, arena, threads)
            return
        upper = self.triangle.upper
        if self.triangle.side == "right":
            a, b, out, upper = b.T, a.T, out.T, not upper
        if self.shared and threads > 1:
            pieces = list(self._pieces(a, b, out, upper, arena))
            parallel_tasks(lambda i, _: self.blas.multiply(*pieces[i], self.dtype), len(pieces), threads)
            return
        cleared = self.clean and self.triangle.side == "out"
        strips = ranges(len(out), self.strips)
        for strip, piece in zip(strips, self._pieces(a, b, out, upper, arena), strict=True):
            self.blas.multiply(*piece, self.dtype)
            if cleared:
                zero_outside_strip(out, *strip, upper)

    def _pieces(self, a: Matrix, b: Matrix, out: Matrix, upper: bool, arena: Arena) -> Iterator[Piece]:
        """Yield the GEMMs of the strips; they write disjoint parts of `out`. A cleaned strip is reused by the next."""
        for start, stop in ranges(len(out), self.strips):
            rows = slice(start, stop)
            reach = slice(start, None) if upper else slice(None, stop)
            if self.triangle.side == "out":
                yield a[rows], b[:, reach], out[rows, reach]
            else:
                diagonal = slice(None, stop - start) if upper else slice(start, stop)
                strip = a[rows, reach]
                yield _cleaned(strip, diagonal, upper, arena) if self.clean else strip, b[reach], out[rows]

    def _run_halves(self, parts: Halves, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int) -> None:
        (first, square, second), half = parts, len(out) // 2
        top, bottom = slice(None, half), slice(half, None)
        far, near = (top, bottom) if self.triangle.upper else (bottom, top)  # the square is [far, near]
        first.run(a[top], b[:, top], out[top, top], arena, threads)
        second.run(a[bottom], b[:, bottom], out[bottom, bottom], arena, threads)
        square.run(a[far], b[:, near], out[far, near], arena, threads)


Halves = tuple[HalfProduct, Leaf, HalfProduct]
"""The first half of a triangle, the square between the halves, and the second half."""


def _cleaned(strip: Matrix, diagonal: slice, upper: bool, arena: Arena) -> Matrix:
    """Return rows of a triangular operand: a view, or a zeroed copy if there are nonzeros outside the triangle."""
    if not has_nonzero_outside_triangle(strip[:, diagonal], upper):
        return strip
    copy = arena.rest().array(strip.shape, strip.dtype)
    copy[...] = strip
    copy[:, diagonal][outside(len(strip), upper)] = 0
    return copy

"""Triangles of matrices: their division into strips, and zeroing outside of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..arrays import Matrix
from ..ranges import ranges

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

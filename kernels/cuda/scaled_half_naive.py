"""Products in tf32 by scaled float16, in numpy: the reference for the kernels of `scaled_half_kernel`."""

from __future__ import annotations

import numpy as np

from ..arrays import Matrix
from .float16_pairs import LOST, MOST_SHIFT, TOP


def scale_lines(x: Matrix, axis: int) -> tuple[Matrix, Matrix]:
    """Return x (float32) in float16, its rows (axis 0) or columns (1) scaled, and the exponents of their scales.

    The largest magnitude of a line is scaled to between 2^(TOP - 1) and 2^TOP, by at most 2^MOST_SHIFT. Lines of zeros
    and lines with entries that are not finite are not scaled.
    """
    largest = np.abs(x).max(axis=1 - axis, initial=0.0)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        exponents = np.where(largest < np.float32(2.0**-126), -125, np.frexp(largest)[1])
        shifts = np.clip(TOP - exponents, -MOST_SHIFT, MOST_SHIFT)
        shifts = np.where(np.isfinite(largest) & (largest > 0), shifts, 0).astype(np.int32)
        scaled = np.ldexp(np.asarray(x, np.float64), np.expand_dims(shifts, 1 - axis))
        return scaled.astype(np.float32).astype(np.float16), shifts


def as_tf32(x: Matrix) -> Matrix:
    """Round float32 to tf32, to nearest; magnitudes that would become infinite are truncated."""
    bits = np.asarray(x, np.float32).view(np.int32)
    size = bits & 0x7FFFFFFF
    rounded = np.where(size < 0x7F7FF000, (bits.astype(np.int64) + 0x1000) & ~0x1FFF, bits.astype(np.int64) & ~0x1FFF)
    return np.where(np.isfinite(x), rounded.astype(np.int32).view(np.float32), x)


def loses_too_much(a: Matrix, b: Matrix, rounding: float) -> bool:
    """Return whether a row or column of the product of scaled A and B may lose more than `rounding` by small entries.

    See `scaled_half.scaled_half_product` for the bound; true if an entry is not finite.
    """
    left, right = np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64))
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return True
    for of_lines, weights, others in (
        (left, right.sum(axis=1), right.shape[1]),
        (right.T, left.sum(axis=0), left.shape[0]),
    ):
        sums, weighted = of_lines.sum(axis=1), of_lines @ weights
        kept = LOST * (weights.sum() + others * sums) <= rounding * weighted
        if weights.any() and not (kept | (sums == 0)).all():
            return True
    return False


def scaled_half_product(a: Matrix, b: Matrix, rounding: float) -> Matrix:
    """Compute C = A B in float32 for float32 matrices, by scaled float16, or in tf32 where that may lose too much."""
    (left, rows), (right, cols) = scale_lines(a, 0), scale_lines(b, 1)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if loses_too_much(left, right, rounding):
            return (as_tf32(a).astype(np.float64) @ as_tf32(b).astype(np.float64)).astype(np.float32)
        product = left.astype(np.float64) @ right.astype(np.float64)
        return np.ldexp(product, -(rows[:, None] + cols[None, :])).astype(np.float32)

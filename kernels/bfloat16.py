"""bfloat16 in numpy, which has none: numbers as bits in uint16, and their conversion by integer arithmetic."""

from __future__ import annotations

import numpy as np

from .arrays import Matrix

NAME = "bfloat16"


def bfloat16_bits(matrix: Matrix) -> Matrix:
    """Return the bits of float32 numbers rounded to the nearest bfloat16, ties to even."""
    bits = np.ascontiguousarray(matrix, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    # Rounding must not turn a NaN whose payload is low into an infinity.
    return np.where(np.isnan(matrix), (bits >> 16) | 0x40, rounded).astype(np.uint16)


def float32_of(bits: Matrix) -> Matrix:
    """Return the float32 numbers of bfloat16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def converted(matrix: Matrix, dtype: str, wanted: str) -> Matrix:
    """Return numbers of a dtype in another one; those of bfloat16 are bits."""
    if dtype == wanted:
        return matrix
    wide = float32_of(matrix) if dtype == NAME else matrix
    return bfloat16_bits(wide) if wanted == NAME else wide.astype(wanted)


def dtype_of(matrix: Matrix) -> str:
    """Return the dtype of stored numbers: bfloat16 for bits in uint16."""
    return NAME if matrix.dtype == np.uint16 else matrix.dtype.name

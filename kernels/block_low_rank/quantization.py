"""Numbers of 8 bits with shared scales: the forms in which the results between two steps may be stored.

The values of one column of X and up to `GROUP` successive ranks share a scale, which is a power of two and stored as
its biased exponent, a byte: as in the OCP Microscaling formats MXFP8 and MXINT8, whose groups are of 32. With a power
of two every conversion back is exact in float16 (within its range), bfloat16 and float32, all devices find the same
scale by integer arithmetic, and 64 values need 65 bytes; a group is a step of a GEMM over the ranks, so that the kernel
that writes a tile has the whole group in registers, and one outlier coarsens no other group.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..e4m3 import decode, encode
from ..request import INTERMEDIATES

Array = npt.NDArray[Any]

FP8, INT8 = INTERMEDIATES

GROUP = 64
"""Ranks that share a scale."""

LIMITS = {FP8: (8, 0x600000), INT8: (6, 0x7E0000)}
"""Exponent and mantissa bits, as float32, of the largest numbers, 448 and 127."""

ONE = 127
"""The biased exponent of the scale 1, that of groups of zeros."""

NON_FINITE = 255
"""The biased exponent of infinity, the scale of groups with an infinity or NaN: their codes are zero, and 0 x inf is
NaN."""

INTEGERS = np.float32(1.5 * 2**23)
"""A float32 whose last place is one, to which integers of 22 bits are added without a carry."""


def groups_of(rank: int) -> int:
    """Return the number of scales for so many ranks of a column."""
    return -(-rank // GROUP)


def quantize(values: Array, form: str) -> tuple[Array, Array]:
    """Return codes (..., rank, n) and biased exponents (..., groups, n), both uint8, of values (..., rank, n).

    The scale is the least power of two by which the largest magnitude of the group is within 448 or 127, at least
    2^-126; codes are rounded to nearest, ties to even. int8 is stored in two's complement.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(values, np.float32)
        bits = values.view(np.int32) & 0x7FFFFFFF
        starts = np.arange(0, values.shape[-2], GROUP)
        most = np.maximum.reduceat(bits, starts, axis=-2)  # the order of magnitudes; of infinity and NaN, too
        exponents = _exponents(most, form)
        scaled = values * _spread(((2 * ONE - exponents) << 23).view(np.float32), values)
        if form == FP8:
            codes = encode(scaled)
        else:
            codes = ((scaled + INTEGERS).view(np.int32) - INTEGERS.view(np.int32)).astype(np.uint8)
    codes = np.where(_spread(exponents == NON_FINITE, values), np.uint8(0), codes)
    return codes, exponents.astype(np.uint8)


def dequantize(codes: Array, exponents: Array, form: str) -> Array:
    """Return the values (..., rank, n) as float32; NaN in groups of scale infinity."""
    values = decode(codes) if form == FP8 else codes.view(np.int8).astype(np.float32)
    with np.errstate(invalid="ignore"):
        values *= _spread((exponents.astype(np.int32) << 23).view(np.float32), values)
    return values


def _exponents(most: Array, form: str) -> Array:
    exponent, mantissa = LIMITS[form]
    found = np.maximum((most >> 23) - exponent + ((most & 0x7FFFFF) > mantissa), 1)
    return np.where(most == 0, ONE, np.where(most >= 0x7F800000, NON_FINITE, found)).astype(np.int32)


def _spread(groups: Array, values: Array) -> Array:
    """Return figures (..., groups, n) for every rank (..., rank, n)."""
    return np.repeat(groups, GROUP, axis=-2)[..., : values.shape[-2], :]

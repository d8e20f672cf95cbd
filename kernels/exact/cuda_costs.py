"""Predicted seconds of exact products on an H200, from measurements.

GF(2): 32768 and 65536 cubed, by leaf, kernel, and levels of 2x2x2:7, 4x4x4:47, 4x4x5:60 and 4x5x5:73. Integers: 2048
and 4096 cubed, entries of 10 to 31 bits. Interleaved medians at 1980 MHz; predictions are within 13% of each.
"""

from __future__ import annotations

from .tensors import VENDOR, BitTensorCore, BitTensorLeaf, FloatTensorLeaf, IntegerTensorCore

INT8_VENDOR, INT8_KERNEL, FLOAT64 = 1.08e15, 1.30e15, 6.0e13
"""Operations per second of torch's int8 product, of our kernel with the parity, and of the float64 GEMM."""

WHOLE, UNEVEN = 128, 0.88
"""Our kernel reaches this fraction of its rate if k is not a multiple of this number."""

MOVED, SUMMED, SUMMED_BELOW, CONVERTED, SPLIT = 4.0e12, 1.3e12, 0.4e12, 2.8e12, 1.6e12
"""Bytes per second: around products of bits, in sums of blocks of the first level and of others, around float64
products and around products of digits.
"""

REDUCED, REDUCED_AGAIN = 25e-12, 15e-12
"""Seconds to reduce an element of a float64 product modulo p, once and for every part of k."""

LAUNCHED = 5e-5
"""Seconds of the launches around a product of integers."""


def bit_costs(core: BitTensorCore, summed: float = SUMMED) -> tuple[float, float, float]:
    """Return operations, bytes and seconds of one product over GF(2)."""
    if isinstance(core, BitTensorLeaf):
        m, k, n = core.sizes
        flops = 2.0 * m * k * n
        if core.method == VENDOR:
            moved = 2.0 * (m * k + k * n) + 8.0 * m * n
            return flops, moved, flops / INT8_VENDOR + moved / MOVED
        moved = 2.0 * (m * k + k * n) + m * n / 8
        rate = INT8_KERNEL if k % WHOLE == 0 else UNEVEN * INT8_KERNEL
        return flops, moved, flops / rate + moved / MOVED
    rank, (m, k, n) = core.level.rank, core.block
    flops, moved, seconds = bit_costs(core.inner, SUMMED_BELOW)
    sums = (core.level.left.terms * m * k + core.level.right.terms * k * n + core.level.merge.terms * m * n) / 8
    return rank * flops, rank * moved + sums, rank * seconds + sums / summed


def integer_costs(core: IntegerTensorCore) -> tuple[str, float, float, float]:
    """Return name, operations, bytes and seconds of one product of integers."""
    m, k, n = core.sizes
    if isinstance(core, FloatTensorLeaf):
        parts = -(-k // core.depth)
        flops, moved = 2.0 * m * k * n, 24.0 * (m * k + k * n) + 32.0 * m * n * parts
        reduced = m * n * (REDUCED + REDUCED_AGAIN * parts) if core.ring.modulus else 0.0
        return "product in float64", flops, moved, flops / FLOAT64 + moved / CONVERTED + reduced + LAUNCHED
    (stage,) = core.stages(1)
    return stage.name, stage.flops, stage.bytes, stage.flops / INT8_VENDOR + stage.bytes / SPLIT + LAUNCHED

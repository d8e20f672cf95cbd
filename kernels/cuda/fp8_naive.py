"""Products of matrices in e4m3 with block scales, in numpy: the reference for the kernels of `fp8_kernel`.

numpy has no e4m3fn: torch converts. One bit of sign, four of exponent with bias 7, three of mantissa; no infinity, NaN
is 0x7F. Source: Micikevicius et al., "FP8 Formats for Deep Learning" (arXiv:2209.05433), table 1.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Matrix, torch

BLOCK = 128
"""Elements along k, and columns of B, that share a scale; of A each row has scales of its own.

Source: DeepSeek-V3 technical report (arXiv:2412.19437), section 3.3.2.
"""

LARGEST = 448.0
"""The largest finite value."""

NAN = 0x7F

FLOOR = 2.0**-100
"""Least magnitude that a scale is computed from, so that neither the scale nor its inverse leaves float32."""


def scale_of(largest: Matrix) -> tuple[Matrix, Matrix]:
    """Return the scales and their inverses (float32) of blocks with these largest finite magnitudes.

    A block is its scale times e4m3 values up to 448; blocks of zeros have the scale 1.
    """
    largest, top = np.asarray(largest, np.float32), np.float32(LARGEST)
    floored = np.maximum(largest, np.float32(FLOOR))
    zero, one = largest == 0, np.float32(1)
    return np.where(zero, one, floored / top), np.where(zero, one, top / floored)


def quantise_rows(a: Matrix) -> tuple[Matrix, Matrix]:
    """Return A (m, k) as e4m3 bits (m, k) and scales (m, ceil(k / 128)), one for every 128 elements of a row.

    Entries that are not finite become NaN, and do not change the scale of their block.
    """
    return _quantised(a, (1, BLOCK))


def quantise_blocks(b: Matrix) -> tuple[Matrix, Matrix]:
    """Return B (k, n) as e4m3 bits (k, n) and scales (ceil(k / 128), ceil(n / 128)), one for every 128 x 128 block."""
    return _quantised(b, (BLOCK, BLOCK))


def largest_of_blocks(x: Matrix, block: tuple[int, int]) -> Matrix:
    """Return the largest finite magnitude of every block of a matrix, float32; 0 for a block without finite entries."""
    wide = np.asarray(x, np.float32)
    height, width = (-(-size // part) for size, part in zip(wide.shape, block, strict=True))
    padded = np.zeros((height * block[0], width * block[1]), np.float32)
    padded[: wide.shape[0], : wide.shape[1]] = np.abs(np.where(np.isfinite(wide), wide, 0))
    return padded.reshape(height, block[0], width, block[1]).max(axis=(1, 3))


def scaled_product(a: tuple[Matrix, Matrix], b: tuple[Matrix, Matrix]) -> Matrix:
    """Compute C (m, n) in float32 of quantised A and B: products of 128 elements along k, times both scales, summed.

    The products of a block are exact to float64 and rounded to float32 once; the sum over blocks is in float32.
    """
    (bits_a, scales_a), (bits_b, scales_b) = a, b
    (m, k), n = bits_a.shape, bits_b.shape[1]
    total = np.zeros((m, n), np.float32)
    across = np.repeat(scales_b, BLOCK, axis=1)[:, :n]
    left, right = (decode(bits).astype(np.float64) for bits in (bits_a, bits_b))
    for place, start in enumerate(range(0, k, BLOCK)):
        part = (left[:, start : start + BLOCK] @ right[start : start + BLOCK]).astype(np.float32)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            total += part * (scales_a[:, place, None] * across[place])
    return total


def fp8_product(a: Matrix, b: Matrix) -> Matrix:
    """Compute C = A B in float32 for A (m, k) and B (k, n) of float32 or float16, both quantised first."""
    return scaled_product(quantise_rows(a), quantise_blocks(b))


def _quantised(x: Matrix, block: tuple[int, int]) -> tuple[Matrix, Matrix]:
    rows, cols = x.shape
    wide = np.asarray(x, np.float32)
    finite = np.isfinite(wide)
    scales, inverses = scale_of(largest_of_blocks(x, block))
    spread = np.repeat(np.repeat(inverses, block[0], axis=0), block[1], axis=1)[:rows, :cols]
    bits = np.where(finite, encode(np.where(finite, wide, 0) * spread), np.uint8(NAN))
    return bits.astype(np.uint8), scales


def encode(values: Matrix) -> Matrix:
    """Return the codes (uint8) of float32 values, rounded to nearest, ties to even; beyond 448 saturated.

    NaN becomes 0x7F.
    """
    cut = torch.from_numpy(np.array(values, np.float32)).clamp(-LARGEST, LARGEST)  # torch makes NaN of larger ones
    return cut.to(torch.float8_e4m3fn).view(torch.uint8).numpy()


def decode(codes: Matrix) -> Matrix:
    """Return the float32 values of codes (uint8)."""
    return torch.from_numpy(np.array(codes)).view(torch.float8_e4m3fn).float().numpy()

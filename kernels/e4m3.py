"""The 8-bit floating-point format e4m3fn, for arrays of numpy, which has none: conversions by torch.

One bit of sign, four of exponent with bias 7, three of mantissa; no infinity, NaN is 0x7F. Source: Micikevicius et al.,
"FP8 Formats for Deep Learning" (arXiv:2209.05433), table 1.
"""

from __future__ import annotations

import numpy as np

from .arrays import Matrix, torch

LARGEST = 448.0
"""The largest finite value."""

NAN = 0x7F


def encode(values: Matrix) -> Matrix:
    """Return the codes (uint8) of float32 values, rounded to nearest, ties to even; beyond 448 saturated.

    NaN becomes 0x7F.
    """
    cut = torch.from_numpy(np.array(values, np.float32)).clamp(-LARGEST, LARGEST)  # torch makes NaN of larger ones
    return cut.to(torch.float8_e4m3fn).view(torch.uint8).numpy()


def decode(codes: Matrix) -> Matrix:
    """Return the float32 values of codes (uint8)."""
    return torch.from_numpy(np.array(codes)).view(torch.float8_e4m3fn).float().numpy()

"""The roofline inequality that a product must meet for any scheme to gain.

Source: FalconGEMM (arXiv:2605.06057), Eq. 8.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..dtypes import dtype_of
from ..planning.profile import Profile


@dataclass(frozen=True)
class RooflineCheck:
    """An inequality with its two sides: arithmetic intensity, and the machine's operations per element moved."""

    name: str
    left: float
    right: float

    @property
    def holds(self) -> bool:
        return self.left > self.right

    def __str__(self) -> str:
        return f"{self.name}: {self.left:.1f} {'>' if self.holds else '<='} {self.right:.1f} flop/element"


def machine_balance(profile: Profile, dtype: str, m: int, k: int, n: int) -> float | None:
    """Return FLOPS_x / beta, with beta in elements per second."""
    rate, bandwidth = profile.gemm_rate(dtype, m, k, n), profile.bandwidth or profile.combine_rate
    if rate is None or bandwidth is None:
        return None
    return rate / (bandwidth / dtype_of(dtype).numpy.itemsize)


def compute_bound(profile: Profile, dtype: str, m: int, k: int, n: int) -> RooflineCheck | None:
    """Eq. 8: if it does not hold the classical product is memory-bound, and no scheme can gain."""
    most = machine_balance(profile, dtype, m, k, n)
    if most is None:
        return None
    return RooflineCheck("Eq. 8", 2.0 * m * n * k / max(m * k + n * k + m * n, 1), most)

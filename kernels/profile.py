"""What is known of a machine: how fast it multiplies, adds and moves data."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from ..errors import SchemeFormatError

SOURCES = ("measured", "published", "unmeasured")


@dataclass(frozen=True)
class GemmRate:
    """Flops per second of one m x k x n product of the vendor's library."""

    dtype: str
    m: int
    k: int
    n: int
    rate: float


@dataclass(frozen=True)
class Profile:
    """One machine. Unknown figures are None, and then nothing is predicted from them.

    `combine_rate` and `bandwidth` are bytes per second, of the generated sums and of a plain copy
    (read and written bytes counted); `caches` are bytes, nearest first; `call_overhead` is seconds.
    """

    id: str
    hardware: str
    versions: tuple[tuple[str, str], ...] = ()
    gemm: tuple[GemmRate, ...] = ()
    combine_rate: float | None = None
    bandwidth: float | None = None
    caches: tuple[int, ...] = ()
    call_overhead: float | None = None
    source: str = "unmeasured"

    def gemm_rate(self, dtype: str, m: int, k: int, n: int) -> float | None:
        """Flops per second of the measured product nearest in size; None where the dtype was not measured."""
        rows = [row for row in self.gemm if row.dtype == dtype]
        if not rows:
            return None

        def distance(row: GemmRate) -> float:
            pairs = ((row.m, m), (row.k, k), (row.n, n))
            return max(max(x, y, 1) / max(min(x, y), 1) for x, y in pairs)

        return min(rows, key=distance).rate

    def to_json(self) -> str:
        """The profile as JSON text."""
        return json.dumps(asdict(self), indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """The inverse of `to_json`.

        Raises:
            SchemeFormatError: the text is not a profile.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            fields["gemm"] = tuple(GemmRate(**row) for row in fields["gemm"])
            fields["versions"] = tuple((name, version) for name, version in fields["versions"])
            fields["caches"] = tuple(fields["caches"])
            profile = cls(**fields)
        except (TypeError, ValueError, KeyError) as error:
            raise SchemeFormatError(f"not a machine profile: {error}") from error
        if profile.source not in SOURCES:
            raise SchemeFormatError(f"profile source must be one of {', '.join(SOURCES)}, not {profile.source!r}")
        return profile


@lru_cache(maxsize=1)
def unmeasured() -> Profile:
    """The profile of this machine before anything was measured."""
    hardware = f"{platform.system()} {platform.machine()}".strip()
    return Profile(id=f"unmeasured {hardware}", hardware=hardware)

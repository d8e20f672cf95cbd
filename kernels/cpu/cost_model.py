"""Predicted seconds on a processor, from measured rates of its libraries and of generated sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import dtype_of
from ..planning.profile import Profile

TILE = 16
"""Rows and columns of the tile that a library's innermost kernel computes."""

LEVEL_SECONDS, CALL_SECONDS = 150e-6, 5e-6
"""Python overhead of a level and of each of its products (measured)."""

SHARED_COMBINE = 0.8
"""Extra cost of sums below the first level with several threads, as a fraction of their predicted seconds.

All threads execute such short sums together, and every thread waits for the slowest. Measured, float32, two
threads, 4096 and 6144x3072x3072.
"""


@dataclass(frozen=True)
class CpuCostModel:
    """A `CostModel`. Modes: "whole" (a product by all threads) and "tasks" (one product per thread at once).

    `spin` is the time that a queue of tasks loses to idle threads of the library, in seconds.
    """

    profile: Profile
    threads: int = 1
    spin: float = 0.0

    def knows(self, dtype: str) -> bool:
        return self.profile.rates(dtype) is not None and self._moving is not None

    @property
    def _moving(self) -> float | None:
        return self.profile.combine_rate or self.profile.bandwidth

    def gemm(self, dtype: str, m: Any, k: Any, n: Any, count: Any = 1, mode: str = "whole") -> Any:
        work = self._work(dtype, m, k, n, count)
        rates = self.profile.rates(dtype, mode)
        return np.nan * work if rates is None else work / rates.at(m, k, n)

    def gemm_modes(self, dtype: str, m: Any, k: Any, n: Any, count: Any = 1) -> tuple[Any, Any]:
        """Return `gemm` in the modes "whole" and "tasks"; the distances to the measured sizes are computed once."""
        work = self._work(dtype, m, k, n, count)
        whole, tasks = self.profile.rates(dtype), self.profile.rates(dtype, "tasks")
        if whole is None or tasks is None:
            return np.nan * work, np.nan * work
        alone, together = whole.both(tasks, m, k, n)
        return work / alone, work / together

    @staticmethod
    def _work(dtype: str, m: Any, k: Any, n: Any, count: Any) -> Any:
        """Return the operations of a product with m and n rounded up to whole register tiles."""
        return 2.0 * (dtype_of(dtype).parts * TILE) ** 2 * count * np.ceil(m / TILE) * k * np.ceil(n / TILE)

    def combine(self, bytes: Any, flops: Any = 0) -> Any:
        """See `CostModel`: the longer of traffic and arithmetic."""
        moving = self._moving
        memory = bytes / moving if moving else np.nan * bytes
        return np.maximum(memory, flops / self.profile.add_rate) if self.profile.add_rate else memory

    def copy(self, bytes: Any) -> Any:
        """Seconds of sums with ordinary stores into small buffers, which run at the rate of a plain copy."""
        return bytes / (self.profile.bandwidth or self.profile.combine_rate or np.nan)

    def overlap(self, combine: Any, mode: str) -> Any:
        """Seconds of inner combinations besides `combine`: zero if each thread computes its own, or is the only one."""
        return SHARED_COMBINE * combine if self.threads > 1 and mode == "whole" else 0.0 * combine

    def overhead(self, calls: Any, levels: Any = 0) -> Any:
        return LEVEL_SECONDS * levels + CALL_SECONDS * calls

"""The planner's description of the machine that a request runs on, and the interface of its cost model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from .profile import Profile

if TYPE_CHECKING:
    from .wisdom import Wisdom

Numbers = Any
"""A number, or an array of numbers; every argument of a cost model broadcasts."""


class CostModel(Protocol):
    """Predicted seconds of the parts of a run, from a machine's measured rates. NaN if the profile has no rate."""

    def knows(self, dtype: str) -> bool:
        """Return whether the profile has rates of products of this dtype and of sums."""

    def gemm(self, dtype: str, m: Numbers, k: Numbers, n: Numbers, count: Numbers = 1, mode: str = "whole") -> Numbers:
        """Seconds of `count` products m x k x n by the vendor's library, in a mode that the profile names."""

    def combine(self, bytes: Numbers, flops: Numbers = 0) -> Numbers:
        """Seconds of linear combinations of blocks by a generated kernel."""

    def overhead(self, calls: Numbers, levels: Numbers = 0) -> Numbers:
        """Seconds of the host for so many library calls and levels."""


@dataclass(frozen=True)
class Machine:
    """A device with its profile and cost model.

    `threads` and `blas_limited` (whether the library's threads can be limited for each task) are used on the
    CPU, `index` on a GPU. `free_bytes` returns the memory that is free now; plans whose workspace exceeds
    `kept_bytes` would allocate fresh pages at every call. `schemes` and `triangular` are the schemes considered
    for dense and for triangular products (None: the user's catalogue, the shipped schemes). `wisdom` are the
    earlier measurements (None: none), `pool` provides the executors' workspace (None: the shared one).
    """

    device: str
    profile: Profile
    costs: CostModel = field(compare=False)
    threads: int = 1
    index: int = 0
    blas_limited: bool = True
    kept_bytes: float = math.inf
    free_bytes: Callable[[], float] = field(default=lambda: math.inf, compare=False)
    schemes: Any = field(default=None, compare=False)
    triangular: tuple[str, ...] | None = field(default=None, compare=False)
    wisdom: Wisdom | None = field(default=None, compare=False)
    pool: Any = field(default=None, compare=False)

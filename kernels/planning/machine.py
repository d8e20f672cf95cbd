"""The planner's description of the machine that a request runs on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .cost_model import CostModel
from .profile import Profile

if TYPE_CHECKING:
    from .wisdom import Wisdom


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

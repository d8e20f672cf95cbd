"""A right operand with its sums of blocks, computed once for all products with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PreparedOperand:
    """B (k x n, an array or a tensor) with the sums of an executor's `prepare`, to pass to `run` instead of b.

    It is valid for every executor of the same program, method, k, n, dtype and layout of B, for any m. `sums` are the
    data that the device's level executor reads instead of B.
    """

    b: Any
    sums: Any
    nbytes: int

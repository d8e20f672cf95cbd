"""A right operand with its sums of blocks, computed once for all products with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PreparedOperand:
    """B (k x n, an array or a tensor) with its sums, as an executor's `prepare` computed them: for `run` in place of b.

    It serves every executor of the same program, method, k, n, dtype and layout of B, whatever m is. `sums` are what
    the level executor of the device reads in place of B.
    """

    b: Any
    sums: Any
    nbytes: int

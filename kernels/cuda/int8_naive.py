"""Products of int8 into int32 in plain torch, on a CPU: the reference for the kernel of `int8`."""

from __future__ import annotations

from ..lazy_torch import Tensor, torch


def stack_product(lefts: Tensor, rights: Tensor) -> Tensor:
    """Return A_r B_r^T modulo 2^32 (count, m, n) for stacks of A_r (m, k) and B_r (n, k) of int8."""
    return (lefts.to(torch.int64) @ rights.to(torch.int64).mT).to(torch.int32)

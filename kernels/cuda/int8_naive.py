"""Products of int8 into int32 in plain torch, on a CPU: the reference for the kernels and levels of `int8`."""

from __future__ import annotations

from typing import Any

from ...schemes_db.program import Program
from . import naive

Tensor = Any


def stack_product(lefts: Tensor, rights: Tensor) -> Tensor:
    """Return A_r B_r^T modulo 2^32 (count, m, n) for stacks of A_r (m, k) and B_r (n, k) of int8."""
    import torch

    return (lefts.to(torch.int64) @ rights.to(torch.int64).mT).to(torch.int32)


def scheme_product(program: Program, a: Tensor, b: Tensor) -> Tensor:
    """Return A B modulo 2^32 by one flat program, with every sum of blocks in int32."""
    import torch

    return naive.product(program, a.to(torch.int32), b.to(torch.int32))

"""The papers' form of a product by torch.compile, which fuses its permutations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any

from .permuted import multiply_permuted
from .structure import BlockLowRank, LowRank
from .tensors import triton_reason

Tensor = Any


def multiply_compiled(structure: BlockLowRank, factors: Sequence[Tensor], x: Tensor, out: Tensor) -> None:
    """Compute out (rows, n) = W x; the first call for a structure and a number of columns compiles."""
    if x.is_meta:
        return  # kernels are compiled ahead on tensors without data; torch compiles for the device of its operands
    _compiled(structure, x.shape[1])(out.T, x.T, *factors)


@lru_cache(maxsize=64)
def _compiled(structure: BlockLowRank, n: int) -> Callable[..., None]:
    """Return the compiled product of a structure and n columns."""
    import torch

    def product(wanted: Tensor, rows: Tensor, *factors: Tensor) -> None:
        wanted.copy_(multiply_permuted(structure, factors, rows))

    # A code object of its own: torch compiles one for eight sizes, and runs it uncompiled for others.
    own = FunctionType(product.__code__.replace(), globals(), closure=product.__closure__)
    compiled: Callable[..., None] = torch.compile(own, dynamic=False)
    return compiled


def compiled_reason(structure: BlockLowRank) -> str | None:
    """Return the reason why `multiply_compiled` does not support this product, or None."""
    if isinstance(structure, LowRank):
        return "torch.compile runs the two GEMMs of strided; choose strided"
    return triton_reason()

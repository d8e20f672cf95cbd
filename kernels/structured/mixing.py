"""Monarch and BLAST products of tensors with one of our Triton kernels, for the first or for the middle products."""

from __future__ import annotations

from typing import Any

from ..cuda.launch import starter
from ..cuda.stack import programs_of
from .block_low_rank import Blast, Monarch
from .blocks import Factors, Tensor
from .chain import FactorChain
from .tiles import multiply_batch, power_above, triton_reason
from .views import tensors_like, view_chain

HALVES = ("float16", "bfloat16")

HANDOVER_TILE = 128, 256, 64
"""Columns of the batch, rows of V and steps over p: the tile that reaches the vendor's rate in a plain GEMM."""


def multiply_handed_over(structure: FactorChain, factors: Factors, x: Tensor, out: Tensor) -> None:
    """Compute out = W x by GEMMs on views, of which one is our kernel: Monarch's first, or BLAST's middle.

    Monarch's V must be that of `relaid`; see `handover_reason` for the limits.
    """
    n, launches, empty = x.shape[1], view_chain(structure, False, False).launches, tensors_like(x)
    if isinstance(structure, Blast):
        inner, mixed = (empty(launch.rows, n, False) for launch in launches[:2])
        launches[0](factors[2], x, inner)
        mix(structure, factors[1], inner, mixed)
        launches[2](factors[0], mixed, out)
        return
    assert isinstance(structure, Monarch)
    middle = x.new_empty((structure.b2, n, structure.b1 * structure.rank))
    place(structure, factors[1], x, middle)
    left = factors[0].reshape(structure.b2, structure.q, -1)
    multiply_batch(left, middle.mT, launches[1].step.target.view(out)[0])


def place(structure: Monarch, v: Tensor, x: Tensor, middle: Tensor, tile: Any = HANDOVER_TILE) -> None:
    """Compute middle (b2, n, b1 r), the first products of a Monarch matrix, in the layout that the second ones read.

    v (b1, b2 r, p) is re-laid out, x (cols, n) batch-first.
    """
    from triton.tools.tensor_descriptor import TensorDescriptor

    from .mixing_kernel import multiply_and_place

    n, (b1, rows, p) = x.shape[1], v.shape
    columns, c, inner = tile
    given = x.T.reshape(n, b1, p)
    described = TensorDescriptor.from_tensor(given, [columns, 1, inner]), TensorDescriptor.from_tensor(v, [1, c, inner])
    programs = min(programs_of(x.device), b1 * -(-n // columns) * -(-rows // c))
    starter(multiply_and_place, (programs,), x)(
        *(*described, middle, n, rows, p, programs),
        **{"B1": b1, "RANK": structure.rank, "N": columns, "C": c, "P": inner},
        num_warps=8,
        num_stages=3,
    )


def mix(structure: Blast, scales: Tensor, inner: Tensor, mixed: Tensor, tile: tuple[int, int] = (256, 4)) -> None:
    """Compute mixed (rank b2, n), BLAST's middle products, from inner (rank b1, n); rows may be padded."""
    from .mixing_kernel import mix_blocks

    n, (columns, ranks) = inner.shape[1], tile
    k, m = (max(16, power_above(side)) for side in (structure.b1, structure.b2))
    starter(mix_blocks, (-(-n // columns), -(-structure.rank // ranks)), inner)(
        *(inner, scales, mixed, n, structure.rank, inner.stride(0)),
        **{"B1": structure.b1, "B2": structure.b2, "K": k, "M": m, "N": columns, "R": ranks},
        num_warps=4,
        num_stages=3,
    )


def relaid(factors: Factors, structure: FactorChain) -> Factors:
    """Return the factors in the layout of `multiply_handed_over`: Monarch's V (b1, b2 r, p), rows of one k adjacent."""
    if not isinstance(structure, Monarch):
        return factors
    v = factors[1].swapaxes(1, 2).reshape(structure.b1, structure.b2 * structure.rank, structure.p)
    return factors[0], v.contiguous()


def handover_reason(structure: FactorChain, dtype: str, first: bool) -> str | None:
    """Return the reason why `multiply_handed_over` does not support this, or None; `first`: x is batch-first."""
    if dtype not in HALVES:
        return f"the kernel multiplies float16 and bfloat16, not {dtype}; choose strided"
    if isinstance(structure, Monarch):
        if not first:
            return "the kernel reads a batch-first X; choose strided"
        if structure.p % 8 or structure.rank % 8:
            return f"the kernel needs p and the rank in whole 16 bytes, not {structure.p} and {structure.rank}"
    elif isinstance(structure, Blast) and max(structure.b1, structure.b2) > 64:
        return "the kernel mixes at most 64 blocks; choose strided"
    return triton_reason()

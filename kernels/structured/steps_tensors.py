"""Block low-rank products of tensors: batched GEMMs on views, some replaced by our Triton kernels."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

from ..cuda.launch import starter
from ..cuda.stack import programs_of
from .block_low_rank import Blast, BlockLowRank, LowRank, Monarch
from .steps import views
from .steps_strategy import padded

Tensor = Any
Factors = Sequence[Tensor]

HALVES = ("float16", "bfloat16")

HANDOVER_TILE = 128, 256, 64
"""Columns of the batch, rows of V and steps over p: the tile that reaches the vendor's rate in a plain GEMM."""


def buffers_of(structure: BlockLowRank, x: Tensor) -> list[Tensor]:
    """Allocate the results between the steps, the batch last, rows padded to whole 16 bytes."""
    n = x.shape[1]
    return [x.new_empty((size, padded(n)))[:, :n] for size in structure.intermediates()]


def multiply_strided(structure: BlockLowRank, factors: Factors, x: Tensor, out: Tensor) -> None:
    """Compute out (rows, n) = W x by GEMMs on views, without permutation.

    The intermediate result of low-rank products is (n, rank): on an H200 (rank, n) took up to 3% longer.
    """
    if isinstance(structure, LowRank):
        import torch

        torch.mm(torch.mm(x.T, factors[1].T), factors[0].T, out=out.T)
        return
    for step in views(structure, factors, x, buffers_of(structure, x), out):
        multiply_blocks(*step)


def multiply_blocks(weights: Tensor, source: Tensor, target: Tensor) -> None:
    """Compute target (count, m, n) = weights (count, m, k) source (count, k, n) by the vendor's product."""
    import torch

    if len(weights) == 1:
        torch.mm(weights[0], source[0], out=target[0])
    else:
        torch.bmm(weights, source, out=target)


def multiply_dense(structure: BlockLowRank, factors: Factors, x: Tensor, out: Tensor) -> None:
    """Compute out = W x, where W is the only factor."""
    import torch

    torch.mm(factors[0], x, out=out)


def expanded(structure: BlockLowRank, factors: Factors) -> Factors:
    """Return W (rows, cols), as the product with the identity."""
    import torch

    first = factors[0]
    identity = torch.eye(structure.cols, dtype=first.dtype, device=first.device)
    full = first.new_empty((structure.rows, structure.cols))
    multiply_strided(structure, factors, identity, full)
    return (full,)


def multiply_tiled(structure: BlockLowRank, factors: Factors, x: Tensor, out: Tensor) -> None:
    """Compute out = W x by GEMMs on views, of which one is our kernel: Monarch's first, or BLAST's middle.

    Monarch's V must be that of `relaid`; see `tiled_reason` for the limits.
    """
    if isinstance(structure, Blast):
        first, _, last = views(structure, factors, x, buffers := buffers_of(structure, x), out)
        multiply_blocks(*first)
        mix(structure, factors[1], *buffers)
        multiply_blocks(*last)
        return
    assert isinstance(structure, Monarch)
    n, b1, b2, q, r = x.shape[1], structure.b1, structure.b2, structure.q, structure.rank
    middle = x.new_empty((b2, n, b1 * r))
    place(structure, factors[1], x, middle)
    wanted = out.reshape(q, b2, n).swapaxes(0, 1) if structure.interleaved else out.reshape(b2, q, n)
    multiply_blocks(factors[0].reshape(b2, q, b1 * r), middle.mT, wanted)


def place(structure: Monarch, v: Tensor, x: Tensor, middle: Tensor, tile: Any = HANDOVER_TILE) -> None:
    """Compute middle (b2, n, b1 r), the first products of a Monarch matrix, in the layout that the second ones read.

    v (b1, b2 r, p) is re-laid out, x (cols, n) batch-first.
    """
    from triton.tools.tensor_descriptor import TensorDescriptor

    from .handover_kernel import multiply_and_place

    n, (b1, rows, p) = x.shape[1], v.shape
    columns, c, inner = tile
    given = x.T.reshape(n, b1, p)
    described = TensorDescriptor.from_tensor(given, [columns, 1, inner]), TensorDescriptor.from_tensor(v, [1, c, inner])
    programs = min(programs_of(x.device), b1 * -(-n // columns) * -(-rows // c))
    starter(multiply_and_place, (programs,), x)(
        *described,
        middle,
        n,
        rows,
        p,
        programs,
        B1=b1,
        RANK=structure.rank,
        N=columns,
        C=c,
        P=inner,
        num_warps=8,
        num_stages=3,
    )


def mix(structure: Blast, scales: Tensor, inner: Tensor, mixed: Tensor, tile: tuple[int, int] = (256, 4)) -> None:
    """Compute mixed (rank b2, n), BLAST's middle products, from inner (rank b1, n); rows may be padded."""
    from .mixing_kernel import mix_blocks

    n, (columns, ranks) = inner.shape[1], tile
    sides = [max(16, 1 << (side - 1).bit_length()) for side in (structure.b1, structure.b2)]
    starter(mix_blocks, (-(-n // columns), -(-structure.rank // ranks)), inner)(
        inner,
        scales,
        mixed,
        n,
        structure.rank,
        inner.stride(0),
        B1=structure.b1,
        B2=structure.b2,
        K=sides[0],
        M=sides[1],
        N=columns,
        R=ranks,
        num_warps=4,
        num_stages=3,
    )


def relaid(structure: BlockLowRank, factors: Factors) -> Factors:
    """Return the factors in the layout of `multiply_tiled`: Monarch's V (b1, b2 r, p), rows of one k adjacent."""
    if not isinstance(structure, Monarch):
        return factors
    v = factors[1].swapaxes(1, 2).reshape(structure.b1, structure.b2 * structure.rank, structure.p)
    return factors[0], v.contiguous()


def triton_reason() -> str | None:
    """Return the reason why no kernel can be compiled, or None."""
    if importlib.util.find_spec("triton") is None:
        return "the kernel needs Triton: pip install 'lcma[torch]' on Linux"
    return None


def tiled_reason(structure: BlockLowRank, dtype: str, first: bool) -> str | None:
    """Return the reason why `multiply_tiled` does not support this product, or None; `first`: x is batch-first."""
    if isinstance(structure, LowRank):
        return "low-rank products need no hand-over; choose strided"
    if dtype not in HALVES:
        return f"the kernel multiplies float16 and bfloat16, not {dtype}; choose strided"
    if isinstance(structure, Monarch):
        if not first:
            return "the kernel reads a batch-first X; choose strided"
        if structure.p % 8 or structure.rank % 8:
            return f"the kernel needs p and the rank in whole 16 bytes, not {structure.p} and {structure.rank}"
    elif max(structure.b1, structure.b2) > 64:  # type: ignore[attr-defined]
        return "the kernel mixes at most 64 blocks; choose strided"
    return triton_reason()

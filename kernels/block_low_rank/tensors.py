"""Block low-rank products of tensors: batched GEMMs on views, some replaced by our Triton kernels."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

from ..cuda.launch import starter
from ..cuda.stack import programs_of
from .permuted import multiply_permuted
from .steps import views
from .strategy import padded
from .structure import Blast, BlockLowRank, LowRank, Monarch

Tensor = Any
Factors = Sequence[Tensor]

MOST_FUSED_RANK = 128
"""Maximum rank of the fused product, whose intermediate result is in the registers of a program."""

MOST_PARTIAL = 16
"""Maximum blocks of outputs of the partial fusion, whose sums are in the registers of a program."""

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


def multiply_permuted_tensors(structure: BlockLowRank, factors: Factors, x: Tensor, out: Tensor) -> None:
    """Compute the product in the papers' form, see `permuted.multiply_permuted`."""
    out.copy_(multiply_permuted(structure, factors, x.T.contiguous()).T)


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


def multiply_partial(structure: BlockLowRank, factors: Factors, x: Tensor, out: Tensor) -> None:
    """Compute out = W x of a BLAST matrix, its first two products by one kernel that sums over blocks."""
    assert isinstance(structure, Blast)
    buffers = [x.new_empty((size, padded(x.shape[1])))[:, : x.shape[1]] for size in structure.intermediates()[1:]]
    left, scales, right = factors
    multiply_and_mix(structure, right, scales, x, buffers[0])
    b2, r = structure.b2, structure.rank
    source = buffers[0].reshape(r, b2, -1).swapaxes(0, 1)
    multiply_blocks(left, source, out.reshape(b2, structure.q, -1))


def multiply_and_mix(
    structure: Blast, v: Tensor, scales: Tensor, x: Tensor, mixed: Tensor, tile: tuple[int, int, int] | None = None
) -> None:
    """Compute mixed (rank b2, n), the first two products of a BLAST matrix, from x (cols, n); rows may be padded."""
    from . import partial_kernel

    n, side = x.shape[1], max(1, 1 << (structure.b2 - 1).bit_length())
    columns, ranks, inner = partial_tile(side) if tile is None else tile
    starter(partial_kernel.multiply_and_mix, (-(-n // columns), -(-structure.rank // ranks)), x)(
        x,
        v,
        scales,
        mixed,
        n,
        structure.rank,
        structure.p,
        *x.stride(),
        mixed.stride(0),
        B1=structure.b1,
        B2=structure.b2,
        M=side,
        N=columns,
        R=ranks,
        P=inner,
        num_warps=8,
        num_stages=3,
    )


def partial_tile(side: int) -> tuple[int, int, int]:
    """Return columns, ranks and inner elements of a tile: sums of `side` blocks that fit the registers of 8 warps."""
    return 64, max(16, min(64, 256 // side)), 64


def relaid(structure: BlockLowRank, factors: Factors) -> Factors:
    """Return the factors in the layout of `multiply_tiled`: Monarch's V (b1, b2 r, p), rows of one k adjacent."""
    if not isinstance(structure, Monarch):
        return factors
    v = factors[1].swapaxes(1, 2).reshape(structure.b1, structure.b2 * structure.rank, structure.p)
    return factors[0], v.contiguous()


def multiply_fused(structure: BlockLowRank, factors: Factors, x: Tensor, out: Tensor) -> None:
    """Compute out = U V x of a low-rank matrix by one kernel, batch-first; see `fused_reason`."""
    from .fused_kernel import multiply_low_rank

    assert isinstance(structure, LowRank)
    n, rank = x.shape[1], structure.rank
    columns, outputs = 64, 64
    blocks = -(-n // columns)
    parts = max(1, min(-(-structure.rows // outputs), programs_of(x.device) // blocks))
    part = -(-structure.rows // (parts * outputs)) * outputs
    starter(multiply_low_rank, (blocks, -(-structure.rows // part)), x)(
        x,
        factors[1],
        factors[0],
        out,
        n,
        structure.cols,
        structure.rows,
        rank,
        part,
        N=columns,
        R=max(16, 1 << (rank - 1).bit_length()),
        P=64,
        Q=outputs,
        num_warps=4,
        num_stages=3,
    )


def triton_reason() -> str | None:
    """Return the reason why no kernel can be compiled, or None."""
    if importlib.util.find_spec("triton") is None:
        return "the kernel needs Triton: pip install 'lcma[torch]' on Linux"
    return None


def tiled_reason(structure: BlockLowRank, dtype: str, first: bool) -> str | None:
    """Return the reason why `multiply_tiled` does not support this product, or None; `first`: x is batch-first."""
    if isinstance(structure, LowRank):
        return "low-rank products need no hand-over; choose strided or fused"
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


def partial_reason(structure: BlockLowRank, dtype: str) -> str | None:
    """Return the reason why `multiply_partial` does not support this product, or None."""
    if not isinstance(structure, Blast):
        return "only BLAST has a middle product to fuse"
    if dtype not in HALVES:
        return f"the kernel multiplies float16 and bfloat16, not {dtype}; choose strided"
    if structure.b2 > MOST_PARTIAL:
        return f"the sums of at most {MOST_PARTIAL} blocks stay in registers; choose strided"
    return triton_reason()


def fused_reason(structure: BlockLowRank, dtype: str, first: bool, last: bool) -> str | None:
    """Return the reason why `multiply_fused` does not support this product, or None.

    `first`, `last`: x and the result are batch-first.
    """
    if not isinstance(structure, LowRank):
        return "only low-rank products are fused"
    if structure.rank > MOST_FUSED_RANK:
        return f"rank {structure.rank} does not stay in registers; {MOST_FUSED_RANK} is the most"
    if dtype not in HALVES:
        return f"the kernel multiplies float16 and bfloat16, not {dtype}; choose strided"
    if not (first and last):
        return "the kernel reads and writes batch-first; choose strided"
    return triton_reason()

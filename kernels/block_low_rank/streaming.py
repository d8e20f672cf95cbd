"""BLAST products whose first and middle steps are one launch; what lies between them stays in the L2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..cuda.launch import starter
from ..cuda.stack import ALIGNED, missing_here, programs_of
from .strategy import padded
from .structure import Blast, BlockLowRank
from .tensors import HALVES, multiply_blocks, triton_reason

Tensor = Any
Factors = Sequence[Tensor]

MOST_BLOCKS = 64

ROW_UNIT = 8
"""Elements of 16 bytes in half precision, which rows must be multiples of for the tensor memory accelerator."""


@dataclass(frozen=True)
class StreamTile:
    """Launch parameters: columns of a chunk, ranks and inner elements of a tile of products, ranks of a mixture, phases
    between the products of a chunk and its mixtures, slots for chunks, programs per multiprocessor, and warps.
    """

    columns: int = 128
    ranks: int = 128
    inner: int = 64
    mixed: int = 8
    lag: int = 3
    slots: int = 5
    programs: int = 2
    warps: int = 4


STREAM_TILES = (
    StreamTile(),
    StreamTile(mixed=16),
    StreamTile(ranks=64, programs=3),
    StreamTile(columns=256, ranks=128, lag=1, slots=3, programs=1, warps=8),
    StreamTile(columns=128, ranks=256, lag=2, slots=4, programs=1, warps=8),
)
"""Tiles that `lcma tune` measures. At rank 1488 and 16 blocks a slot of 128 columns takes 6 MB of the 50 MB of an
H200's L2. Two or three programs of a multiprocessor hide each other's loads and stores; one alone can have the vendor's
tile."""


def slots_of(n: int, tile: StreamTile) -> int:
    """Return the number of slots for chunks of n columns."""
    return min(tile.slots, -(-n // tile.columns))


def held_elements(structure: Blast, n: int, tile: StreamTile) -> int:
    """Return the elements of the slots and of the middle's results."""
    slot = structure.rank * structure.b1 * tile.columns
    return slots_of(n, tile) * slot + structure.rank * structure.b2 * padded(n)


def multiply_streamed(
    structure: BlockLowRank, factors: Factors, x: Tensor, out: Tensor, tile: StreamTile = STREAM_TILES[0]
) -> None:
    """Compute out (rows, n) = W x for a batch-first x (cols, n) of a BLAST matrix; see `streamed_reason`."""
    assert isinstance(structure, Blast)
    n, b2, r = x.shape[1], structure.b2, structure.rank
    mixed = x.new_empty((r * b2, padded(n)))[:, :n]
    multiply_and_mix_chunks(structure, factors, x, mixed, tile)
    multiply_blocks(factors[0], mixed.reshape(r, b2, n).swapaxes(0, 1), out.reshape(b2, structure.q, n))


def multiply_and_mix_chunks(structure: Blast, factors: Factors, x: Tensor, mixed: Tensor, tile: StreamTile) -> None:
    """Compute mixed (rank b2, n), BLAST's middle products, from a batch-first x (cols, n); mixed may be padded."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    from .streaming_kernel import multiply_and_mix

    n, (b1, rank, p) = x.shape[1], factors[2].shape
    rows = x.T
    if rows.stride(0) % ROW_UNIT or rows.data_ptr() % ALIGNED:
        rows = rows.contiguous()
    chunks, slots = -(-n // tile.columns), slots_of(n, tile)
    sides = [max(16, 1 << (side - 1).bit_length()) for side in (b1, structure.b2)]
    starter(multiply_and_mix, (tile.programs * programs_of(x.device),), x)(
        TensorDescriptor.from_tensor(rows.reshape(n, b1, p), [tile.columns, 1, tile.inner]),
        TensorDescriptor.from_tensor(factors[2], [1, tile.ranks, tile.inner]),
        factors[1],
        x.new_empty((slots, rank, b1, tile.columns)),
        mixed,
        torch.zeros(1 + 2 * chunks, dtype=torch.int32, device=x.device),
        n,
        rank,
        p,
        mixed.stride(0),
        slots,
        B1=b1,
        B2=structure.b2,
        K=sides[0],
        M=sides[1],
        N=tile.columns,
        C=tile.ranks,
        P=tile.inner,
        R=tile.mixed,
        LAG=min(tile.lag, chunks),
        num_warps=tile.warps,
        num_stages=3,
    )


def streamed_reason(structure: BlockLowRank, dtype: str, first: bool) -> str | None:
    """Return the reason why `multiply_streamed` does not support this product, or None; `first`: x is batch-first."""
    if not isinstance(structure, Blast):
        return "only BLAST has a middle product to stream"
    if dtype not in HALVES:
        return f"the kernel multiplies float16 and bfloat16, not {dtype}; choose strided"
    if not first:
        return "the kernel reads a batch-first X; choose strided"
    if structure.p % ROW_UNIT:
        return f"the kernel needs p in whole 16 bytes, not {structure.p}"
    if max(structure.b1, structure.b2) > MOST_BLOCKS:
        return f"the kernel mixes at most {MOST_BLOCKS} blocks; choose strided"
    return triton_reason() or missing_here()

"""Block low-rank products of tensors whose intermediate results are codes of 8 bits: launches of our kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..cuda.launch import starter
from .quantization import FP8, GROUP, groups_of
from .structure import Blast, BlockLowRank, LowRank, Monarch
from .tensors import triton_reason

Tensor = Any
Factors = Sequence[Tensor]

DTYPES = ("float16", "bfloat16", "tf32", "float32")

FP8_CAPABILITY = 8, 9
"""Compute capability of the first GPUs that convert e4m3."""

MOST_MIXED = 64
"""Maximum blocks of outputs of BLAST, whose sums are in the registers of a program."""

TILE = 128, 128, 64
"""Columns, outputs and steps of a GEMM's tile."""

MIXED_SUMS = 8192
"""Sums of a program of BLAST's middle products: 64 registers of each of 128 threads."""


def multiply_quantized(
    structure: BlockLowRank, factors: Factors, x: Tensor, out: Tensor, form: str, precision: str = "ieee"
) -> None:
    """Compute out (rows, n) = W x, x (cols, n) and out of any strides, with intermediate results in a `form` of 8 bits.

    `precision` is that of float32 products, "ieee" or "tf32". float16 and bfloat16 are multiplied in themselves; sums
    are float32.
    """
    from .quantized_kernel import multiply_codes, multiply_into_codes

    assert isinstance(structure, LowRank | Monarch | Blast)
    n, rank, groups = x.shape[1], structure.rank, groups_of(structure.rank)
    inputs, outputs, blocks = _blocks(structure)
    p, q = structure.cols // inputs, structure.rows // outputs
    codes, exponents = _empty(x, blocks, n, rank)
    columns, widest, inner = TILE
    side = min(widest, _power(rank))
    starter(multiply_into_codes, (-(-rank // side), -(-n // columns), blocks), x)(
        x,
        factors[-1],
        codes,
        exponents,
        n,
        rank,
        p,
        inputs,
        *x.stride(),
        *_strides(structure),
        groups,
        FP8=form == FP8,
        N=columns,
        C=side,
        G=min(side, GROUP),
        P=inner,
        PRECISION=precision,
        num_warps=8 if side == widest else 4,
        num_stages=3,
    )
    if isinstance(structure, Blast):
        codes, exponents = mix_quantized(structure, factors[1], codes, exponents, form)
    row, col = out.stride()
    interleaved = isinstance(structure, Monarch) and structure.interleaved
    starter(multiply_codes, (-(-q // widest), -(-n // columns), outputs), x)(
        factors[0],
        codes,
        exponents,
        out,
        n,
        rank,
        q,
        blocks // outputs if isinstance(structure, Monarch) else 1,
        groups,
        row if interleaved else q * row,
        outputs * row if interleaved else row,
        col,
        FP8=form == FP8,
        N=columns,
        Q=widest,
        G=min(GROUP, _power(rank)),
        PRECISION=precision,
        num_warps=8,
        num_stages=3,
    )


def mix_quantized(
    structure: Blast, scales: Tensor, codes: Tensor, exponents: Tensor, form: str
) -> tuple[Tensor, Tensor]:
    """Return codes (b2, n, rank) and exponents of BLAST's middle products, from those of its first (b1, n, rank)."""
    from .quantized_kernel import mix_codes

    n, rank = codes.shape[1:]
    side, group, groups = 1 << (structure.b2 - 1).bit_length(), min(GROUP, _power(rank)), groups_of(rank)
    mixed, mixed_exponents = _empty(codes, structure.b2, n, rank)
    columns = mixed_columns(side, group)
    starter(mix_codes, (-(-n // columns), groups), codes)(
        scales,
        codes,
        exponents,
        mixed,
        mixed_exponents,
        n,
        rank,
        groups,
        B1=structure.b1,
        B2=structure.b2,
        FP8=form == FP8,
        N=columns,
        M=side,
        G=group,
        num_warps=4,
        num_stages=3,
    )
    return mixed, mixed_exponents


def mixed_columns(side: int, group: int) -> int:
    """Return the columns of a program of BLAST's middle products for `side` blocks of outputs and `group` ranks."""
    return max(1, min(64, MIXED_SUMS // (side * group)))


def code_bytes(structure: BlockLowRank, size: int, n: int) -> int:
    """Return the bytes of the codes and scales of an intermediate result of `size` elements per column."""
    assert isinstance(structure, LowRank | Monarch | Blast)
    return (size + size // structure.rank * groups_of(structure.rank)) * n


def quantized_reason(structure: BlockLowRank, dtype: str, form: str) -> str | None:
    """Return the reason why `multiply_quantized` does not support this product, or None."""
    if dtype not in DTYPES:
        return f"the kernels of 8-bit intermediates multiply {', '.join(DTYPES)}, not {dtype}"
    if isinstance(structure, Blast) and structure.b2 > MOST_MIXED:
        return f"the kernel of 8-bit intermediates mixes into at most {MOST_MIXED} blocks, not {structure.b2}"
    return triton_reason() or (fp8_reason() if form == FP8 else None)


def fp8_reason() -> str | None:
    """Return the reason why the current GPU does not convert e4m3, or None; None, too, where there is no GPU."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    found = torch.cuda.get_device_capability()
    if torch.version.hip is None and found >= FP8_CAPABILITY:
        return None
    needed = ".".join(map(str, FP8_CAPABILITY))
    return f"{torch.cuda.get_device_name()} does not convert fp8 (NVIDIA's capability {needed} does); choose int8"


def _blocks(structure: BlockLowRank) -> tuple[int, int, int]:
    """Return the blocks of inputs and of outputs, and the blocks of the first intermediate result."""
    if isinstance(structure, LowRank):
        return 1, 1, 1
    assert isinstance(structure, Monarch | Blast)
    b1, b2 = structure.b1, structure.b2
    return b1, b2, b1 * b2 if isinstance(structure, Monarch) else b1


def _strides(structure: BlockLowRank) -> tuple[int, int, int]:
    """Return V's strides in elements: of blocks of inputs and of outputs, and of ranks."""
    if isinstance(structure, LowRank):
        return 0, 0, structure.cols
    assert isinstance(structure, Monarch | Blast)
    p, r = structure.p, structure.rank
    return (r * structure.b2 * p, p, structure.b2 * p) if isinstance(structure, Monarch) else (r * p, 0, p)


def _empty(like: Tensor, blocks: int, n: int, rank: int) -> tuple[Tensor, Tensor]:
    """Allocate codes (blocks, n, rank) and biased exponents (blocks, groups, n)."""
    import torch

    shapes = (blocks, n, rank), (blocks, groups_of(rank), n)
    codes, exponents = (like.new_empty(shape, dtype=torch.uint8) for shape in shapes)
    return codes, exponents


def _power(rank: int) -> int:
    """Return the least power of two that covers a rank, at least 16: the side of a product of tensor cores."""
    return max(16, 1 << (rank - 1).bit_length())

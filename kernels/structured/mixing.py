"""BLAST products of tensors: two batched GEMMs on views, and our Triton kernel for the middle products between them."""

from __future__ import annotations

from ..cuda.launch import starter
from .block_low_rank import Blast
from .blocks import Factors, Tensor
from .tiles import power_above, triton_reason
from .views import tensors_like, view_chain

MOST_BLOCKS = 64
"""Maximum of b1 and b2: the kernel holds the scales of a rank as one matrix."""


def multiply_mixed(structure: Blast, factors: Factors, x: Tensor, out: Tensor) -> None:
    """Compute out (rows, n) = W x (cols, n); see `mixing_reason` for the limits."""
    n, launches, empty = x.shape[1], view_chain(structure, False, False).launches, tensors_like(x)
    inner, mixed = (empty(launch.rows, n, False) for launch in launches[:2])
    launches[0](factors[2], x, inner)
    mix(structure, factors[1], inner, mixed)
    launches[2](factors[0], mixed, out)


def mix(structure: Blast, scales: Tensor, inner: Tensor, mixed: Tensor, tile: tuple[int, int] = (256, 4)) -> None:
    """Compute mixed (rank b2, n), BLAST's middle products, from inner (rank b1, n); rows may be padded."""
    from .factor_kernels import mix_blocks

    n, (columns, ranks) = inner.shape[1], tile
    k, m = (max(16, power_above(side)) for side in (structure.b1, structure.b2))
    starter(mix_blocks, (-(-n // columns), -(-structure.rank // ranks)), inner)(
        *(inner, scales, mixed, n, structure.rank, inner.stride(0)),
        **{"B1": structure.b1, "B2": structure.b2, "K": k, "M": m, "N": columns, "R": ranks},
        num_warps=4,
        num_stages=3,
    )


def mixing_reason(structure: Blast, dtype: str) -> str | None:
    """Return the reason why `multiply_mixed` does not support this, or None."""
    if dtype not in ("float16", "bfloat16"):
        return f"the kernel multiplies float16 and bfloat16, not {dtype}; choose strided"
    if max(structure.b1, structure.b2) > MOST_BLOCKS:
        return f"the kernel mixes at most {MOST_BLOCKS} blocks; choose strided"
    return triton_reason()

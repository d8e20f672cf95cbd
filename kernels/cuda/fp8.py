"""Products on a GPU in e4m3 with block scales: operands are quantised, products summed in float32.

Each 128 elements of a row of A have a scale, and so has each 128 x 128 block of B. An entry that is not finite makes
its row (of A) or column (of B) of C non-finite, and nothing else. An entry is rounded by up to 2^-4 of itself, or by
2^-10 of the scale of its block. Source of the scales: DeepSeek-V3 technical report (arXiv:2412.19437), section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..arrays import Tensor, torch
from .fp8_naive import BLOCK
from .launch import device_for, on_device, starter
from .packed_product import PackedArithmetic

CAPABILITY, CUDA = 9, (12, 9)
"""Major compute capability, and first version of CUDA, with which torch's `scaled_mm` has block scales."""

ROWS = 16
"""Rows of A that one program quantises."""

SCALES_ALIGNED = 4
"""Scales of B along k are stored in multiples of this number, as torch's `scaled_mm` requires."""


@dataclass(frozen=True)
class Quantised:
    """Rows of A or columns of B in e4m3 with their scales (float32).

    `bits` (lines, pitch) has zeros from k on. `scales` are (blocks, m) for A, and (groups of 128 columns,
    `scale_pitch(k)`) for B.
    """

    bits: Tensor
    scales: Tensor


def blocks_of(length: int) -> int:
    """Return the number of blocks of so many elements."""
    return -(-length // BLOCK)


def pitch_of(length: int) -> int:
    """Return the bytes from a line of bits to the next."""
    return BLOCK * blocks_of(length)


def scale_pitch(length: int) -> int:
    """Return the scales from a group of columns of B to the next, for k = `length`."""
    return -(-blocks_of(length) // SCALES_ALIGNED) * SCALES_ALIGNED


def packed_bytes(k: int, n: int) -> int:
    """Return the bytes of a quantised B."""
    return n * pitch_of(k) + 4 * blocks_of(n) * scale_pitch(k)


def rows_bytes(m: int, k: int) -> int:
    """Return the bytes of a quantised A."""
    return m * pitch_of(k) + 4 * m * blocks_of(k)


def quantised_rows(a: Tensor) -> Quantised:
    """Return A (m, k) of any strides with a scale for each 128 elements of a row."""
    m, k = a.shape
    bits = torch.empty((m, pitch_of(k)), dtype=torch.float8_e4m3fn, device=a.device)
    scales = torch.empty((blocks_of(k), m), dtype=torch.float32, device=a.device)
    _quantise(a, bits, scales, (1, m), ROWS, False)
    return Quantised(bits, scales)


def packed_columns(b: Tensor) -> Tensor:
    """Return B (k, n) of any strides quantised with a scale for each 128 x 128 block, as bytes; see `unpacked`."""
    k, n = b.shape
    packed = torch.empty(packed_bytes(k, n), dtype=torch.uint8, device=b.device)
    found = unpacked(packed, k, n)
    if scale_pitch(k) > blocks_of(k):
        found.scales.zero_()
    _quantise(b.mT, found.bits, found.scales, (scale_pitch(k), 1), BLOCK, True)
    return packed


def unpacked(packed: Tensor, k: int, n: int) -> Quantised:
    """Return the columns of a quantised B (k, n) as views of the result of `packed_columns`."""
    size = n * pitch_of(k)
    bits = packed[:size].view(torch.float8_e4m3fn).view(n, pitch_of(k))
    return Quantised(bits, packed[size:].view(torch.float32).view(blocks_of(n), scale_pitch(k)))


def _quantise(x: Tensor, bits: Tensor, scales: Tensor, steps: tuple[int, int], lines: int, blocks: bool) -> None:
    from .fp8_kernel import quantise

    grid = (-(-x.shape[0] // lines), blocks_of(x.shape[1]))
    with on_device(x):
        starter(quantise, grid, x)(
            *(x, bits, scales, *x.shape, *x.stride(), bits.stride(0), *steps),
            **{"BLOCKS": blocks, "LINES": lines, "ALONG": BLOCK},
            num_warps=8 if blocks else 4,
        )


def multiply_by_vendor(a: Quantised, b: Quantised, out: Tensor | None = None) -> Tensor:
    """Compute A B in bfloat16 by torch's `scaled_mm`, in `out` or a new tensor; see `vendor_reason` for the sizes."""
    from torch.nn import functional

    rows, blocks = functional.ScalingType.BlockWise1x128, functional.ScalingType.BlockWise128x128
    left, right = (a.bits, a.scales.t()), (b.bits.t(), b.scales.t())
    if out is None or out.is_meta or not out.is_contiguous():
        found = functional.scaled_mm(left[0], right[0], left[1], rows, right[1], blocks)
        return found if out is None else out.copy_(found)
    # The function has no `out`, its operator has one.
    given: tuple[Any, ...] = [left[1]], [rows.value], [], [right[1]], [blocks.value], [], None, out.dtype
    return torch.ops.aten._scaled_mm_v2.out(left[0], right[0], *given, out=out)


def vendor_reason(m: int, k: int, n: int) -> str | None:
    """Return the reason why torch's `scaled_mm` does not multiply these sizes with block scales, or None."""
    if k % BLOCK or n % BLOCK or m % SCALES_ALIGNED:
        return f"torch's scaled_mm takes k and n in multiples of {BLOCK} and m in multiples of {SCALES_ALIGNED}"
    try:
        from torch.nn import functional
    except ImportError:
        return None
    return None if hasattr(functional, "scaled_mm") else "torch has no scaled_mm with block scales; 2.10 has it"


@lru_cache(maxsize=16)
def missing_block_scales(device: Any) -> str | None:
    """Return the reason why torch's `scaled_mm` has no block scales on a torch device, or None."""
    device = device_for(device)
    if device.type != "cuda":
        return None
    found = torch.cuda.get_device_capability(device) if torch.version.hip is None else (0, 0)
    if found[0] != CAPABILITY:
        here = ".".join(map(str, found))
        return f"torch's scaled_mm has block scales on compute capability {CAPABILITY}.x only, and this GPU has {here}"
    if tuple(map(int, str(torch.version.cuda).split(".")[:2])) < CUDA:
        return f"torch's scaled_mm has block scales from CUDA 12.9 on, and this torch is for {torch.version.cuda}"
    return None


BY_VENDOR = PackedArithmetic(
    lambda a, b, packed, out: multiply_by_vendor(quantised_rows(a), unpacked(packed, *b.shape), out),
    packed_columns,
    packed_bytes,
    missing_block_scales,
)
"""Quantise B, unless it is packed, and A; then torch's `scaled_mm`."""

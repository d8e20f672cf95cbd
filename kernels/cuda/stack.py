"""Products of a stack of matrices in half precision by one persistent kernel.

The vendor's batched product restarts its tiles for every matrix; here programs continue with the next
matrix, and tiles are loaded by the tensor memory accelerator (TMA). Measured on an H200: 49 products
of 4096 in bfloat16 take 0.94 of the vendor's batched time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..arrays import Tensor, torch
from .launch import device_for
from .tiles import SIDES, Tile, launch

DTYPES = ("bfloat16", "float16")
"""Dtypes of two bytes that tensor cores multiply; others use the vendor's product."""

CAPABILITY = (9, 0)
"""Compute capability of the first GPUs with a tensor memory accelerator."""

ALIGNED = 16
"""Bytes that addresses and rows must be multiples of for TMA."""

GROUP = 16
"""Rows of tiles that are computed together, so that they share operands in the cache."""

TILE = Tile(128, 256, 64, 8, 3)
"""The fastest of eight tiles in bfloat16 on an H200, at 49 x 4096, 7 x 8192 and 49 x 2048."""


def fits_stack(count: int, m: int, k: int, dtype: str, tile: Tile = TILE) -> bool:
    """Return whether products of these sizes are supported: stacked matrices must begin at tile boundaries."""
    return dtype in DTYPES and min(m, k) > 0 and (count == 1 or not (m % tile.m or k % tile.k))


@lru_cache(maxsize=1)
def _kernel() -> tuple[Any, Any] | None:
    """Return the tensor descriptor class and the kernel; None if Triton is missing or too old for it."""
    try:
        from triton.tools.tensor_descriptor import TensorDescriptor

        from .stack_kernel import stack_gemm
    except ImportError:
        return None
    return TensorDescriptor, stack_gemm


@lru_cache(maxsize=16)
def missing_accelerator(device: Any) -> str | None:
    """Return the reason why Triton cannot use TMA on a torch device, or None; a CPU uses the interpreter."""
    if _kernel() is None:
        return "the tensor memory accelerator needs Triton 3.4 or newer: pip install 'lcma[torch]' on Linux"
    device = device_for(device)
    if device.type != "cuda":
        return None
    if torch.version.hip is not None:  # whose capabilities are numbered otherwise
        return "its tiles come by the tensor memory accelerator of NVIDIA's GPUs, which AMD's have not"
    if (found := torch.cuda.get_device_capability(device)) >= CAPABILITY:
        return None
    here, needed = (".".join(map(str, one)) for one in (found, CAPABILITY))
    return f"its tiles come by the tensor memory accelerator, which compute capability {here} has not; {needed} has"


@lru_cache(maxsize=16)
def programs_of(device: Any) -> int:
    """Return the number of persistent programs: one per multiprocessor."""
    device = device_for(device)
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 3


def rows_of(stack: Tensor) -> tuple[Tensor, bool] | None:
    """Return matrices (count, rows, cols) stacked vertically, (count rows, cols), or their transposes (and True).

    None if the strides do not permit it.
    """
    for transposed in (False, True):
        matrices = stack.mT if transposed else stack
        count, rows, cols = matrices.shape
        steps = matrices.stride()
        whole = steps[2] == 1 and (count == 1 or steps[0] == rows * steps[1]) and steps[1] >= cols
        if whole and not (steps[1] * stack.element_size() % ALIGNED or stack.data_ptr() % ALIGNED):
            return matrices.as_strided((count * rows, cols), (steps[1], 1)), transposed
    return None


def multiply_stack(
    lefts: Tensor,
    rights: Tensor,
    out: Tensor,
    *,
    tiles: Tensor | None = None,
    side: str = "",
    upper: bool = False,
    tile: Tile = TILE,
) -> bool:
    """Compute out_r = lefts_r rights_(r // heads): (count, m, k), (count / heads, k, n) into (count, m, n).

    With a triangle on `side` the `tiles`, int32 pairs (row, column), are computed in their order. Return False
    without launching if the tensors' strides or the device do not support TMA.
    """
    count, m, k = lefts.shape
    n = rights.shape[2]
    dtype = str(lefts.dtype).removeprefix("torch.")
    found = _kernel()
    if found is None or not (fits_stack(count, m, k, dtype, tile) and n and missing_accelerator(lefts.device) is None):
        return False
    describe, kernel = found
    a, b, c = (rows_of(stack) for stack in (lefts, rights, out))
    if a is None or b is None or c is None or c[1]:
        return False
    described = [
        describe.from_tensor(matrix, list(block))
        for matrix, block in (
            (a[0], (tile.k, tile.m) if a[1] else (tile.m, tile.k)),
            (b[0], (tile.n, tile.k) if b[1] else (tile.k, tile.n)),
            (c[0], (tile.m, tile.n)),
        )
    ]
    places = -(-m // tile.m) * -(-n // tile.n) if tiles is None else len(tiles)
    programs = min(programs_of(lefts.device), count * places)
    launch(
        kernel,
        (programs,),
        lefts,
        (*described, out if tiles is None else tiles, count, places, m, k, n, count // len(rights), programs),
        tile,
        SIDE=SIDES.index(side),
        UPPER=upper,
        A_T=a[1],
        B_T=b[1],
        GROUP=GROUP,
        FLAT=side in ("", "out"),
    )
    return True

"""Products of float32 on a GPU by three products of float16 halves: about as exact as strict float32, in less time.

Rows of A and columns of B are scaled by powers of two into the range of float16, then x = high + low, with an error
of 2^-22 |x| + 2^-39 max|x| over the row or column. A prototype on an H200, 8192 x 8192 x 8192
normal entries: relative error in the Frobenius norm 3.1e-7, the vendor's strict product 1.6e-6.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

from ...errors import PlanError
from ..request import Request
from .dtypes import vendor_precision
from .launch import starter
from .stack import missing_accelerator
from .tiles import Tile

Tensor = Any

TILE = Tile(128, 128, 32, 8, 4)
"""The fastest of a prototype on an H200 at 8192; this kernel has not been timed."""

GROUP = 8
"""Rows of tiles that are computed together."""

TOP = 14
"""Scaled entries are below 2^TOP, so that no half is infinite."""

MOST_SHIFT = 120
"""Largest power of two by which a row or column is scaled."""

ROUNDING, LOST = 2.0**-22, 2.0**-25
"""Error of an element of the halves relative to itself, and at least, in units of the scaled matrix."""

ALIGNED = 8
"""Elements of float16 that rows of halves are multiples of, as the tensor memory accelerator needs them."""

BLOCK = (32, 128)
"""Rows and columns of a matrix that one program splits."""


def pitch_of(cols: int) -> int:
    """Elements from one row of halves to the next."""
    return -(-cols // ALIGNED) * ALIGNED


class SplitExecutor:
    """Runs a dense product of float32 matrices by halves; see `split_product`."""

    def __init__(self, request: Request, workspace: int) -> None:
        self.request, self.workspace = request, workspace

    def run(self, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        """C = A B in `out`, or in a new tensor.

        Raises:
            PlanError: the tensors are not of the request, or outside the contract of `split_product`.
        """
        m, k, n = self.request.shape
        import torch

        if tuple(a.shape) != (m, k) or tuple(b.shape) != (k, n) or {a.dtype, b.dtype} != {torch.float32}:
            raise PlanError(f"the plan is for float32 matrices {m}x{k} and {k}x{n}; plan again")
        if out is not None and (tuple(out.shape) != (m, n) or out.dtype != a.dtype or out.device != a.device):
            raise PlanError(f"out must be a float32 tensor of shape {(m, n)} on {a.device}")
        if missing := missing_accelerator(a.device):
            warnings.warn(f"{missing}: the product is the vendor's", stacklevel=2)
            with vendor_precision("float32"):
                return torch.matmul(a, b, out=out)
        # Both operands are split before C is written, so that `out` may share memory with them.
        return split_product(a, b, a.new_empty((m, n)) if out is None else out)


def split_product(a: Tensor, b: Tensor, out: Tensor, tile: Tile = TILE) -> Tensor:
    """out = a b for float32 matrices (m, k) and (k, n) of any strides.

    The contract: with E = |A| |B|, the error of a row or column of C by halves is of the order of that of float32,
    relative to the same row or column of E. Rows of A and columns of B may have any scale from 2^-100 to 2^100.

    Raises:
        PlanError: an entry is not finite, or the sizes of entries along k are too far apart for two halves.
    """
    shifts_a, shifts_b = _shifts(a, 1), _shifts(b, 0)
    if not a.is_meta:
        _check(a, b, *shifts_a, *shifts_b)
    (m, k), n = a.shape, b.shape[1]
    halves = (*_split(a, shifts_a[0], 0), *_split(b, shifts_b[0], 1))
    describe, _, gemm = _kernels()
    blocks = ((tile.m, tile.k), (tile.m, tile.k), (tile.k, tile.n), (tile.k, tile.n))
    described = [describe.from_tensor(half, list(block)) for half, block in zip(halves, blocks, strict=True)]
    grid = (-(-m // tile.m) * -(-n // tile.n),)
    numbers = (m, k, n, out.stride(0), out.stride(1))
    constants = {"GROUP": GROUP, "M": tile.m, "N": tile.n, "K": tile.k}
    with _on(a):
        starter(gemm, grid, a)(
            *described,
            shifts_a[0],
            shifts_b[0],
            out,
            *numbers,
            **constants,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )
    return out


@lru_cache(maxsize=1)
def _kernels() -> tuple[Any, Any, Any]:
    from triton.tools.tensor_descriptor import TensorDescriptor

    from .split_kernel import split_gemm, split_halves

    return TensorDescriptor, split_halves, split_gemm


def _on(like: Tensor) -> Any:
    import torch

    return torch.cuda.device(like.device) if like.is_cuda else nullcontext()


def _shifts(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The powers (int32) that scale rows or columns to below 2^TOP, and their largest magnitudes (0: no entries)."""
    import torch

    largest = torch.linalg.vector_norm(x, torch.inf, dim=axis)
    powers = torch.frexp(largest).exponent.to(torch.int32)
    shifts = (TOP - powers).clamp(-MOST_SHIFT, MOST_SHIFT)
    return torch.where(largest.isfinite() & (largest > 0), shifts, 0).to(torch.int32), largest


def _split(x: Tensor, shifts: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    rows, cols = x.shape
    pitch = pitch_of(cols)
    import torch

    _, kernel, _ = _kernels()
    high, low = (torch.empty((rows, pitch), dtype=torch.float16, device=x.device)[:, :cols] for _ in range(2))
    grid = (-(-rows // BLOCK[0]), -(-cols // BLOCK[1]))
    numbers = (rows, cols, x.stride(0), x.stride(1), pitch)
    with _on(x):
        starter(kernel, grid, x)(x, shifts, high, low, *numbers, AXIS=axis, M=BLOCK[0], N=BLOCK[1], num_warps=4)
    return high, low


def _check(a: Tensor, b: Tensor, shift_a: Tensor, large_a: Tensor, shift_b: Tensor, large_b: Tensor) -> None:
    """Raise where a bound of what the halves lose exceeds ROUNDING |A| |B| in a row or column of C.

    An element of C loses at most LOST (sum|a| + sum|b|) over k, of scaled a and b, by entries far below the largest.
    """
    import torch

    def power(shifts: Tensor) -> Tensor:
        return torch.exp2(shifts.double())

    # Sums over k of |a| and |b|, each scaled, by row and column; then of |A| |B| over columns and over rows.
    wide_a, wide_b = (x.abs() for x in (a, b))
    scale_a, scale_b = power(shift_a), power(shift_b)
    ones = a.new_ones(a.shape[1])
    rows_a, cols_b = (wide_a @ ones).double() * scale_a, (ones @ wide_b).double() * scale_b
    weights_b = (wide_b @ scale_b.float()).double()
    weights_a = (scale_a.float() @ wide_a).double()
    rows = (wide_a @ (weights_b * SMALLER).float()).double() * (scale_a / SMALLER)
    cols = ((weights_a * SMALLER).float() @ wide_b).double() * (scale_b / SMALLER)
    some_a, some_b = large_a > 0, large_b > 0
    lost_rows = torch.where(some_a, LOST * (cols_b.sum() + some_b.sum() * rows_a), 0.0) * some_b.any()
    lost_cols = torch.where(some_b, LOST * (rows_a.sum() + some_a.sum() * cols_b), 0.0) * some_a.any()
    finite = large_a.isfinite().all() & large_b.isfinite().all()
    kept = (lost_rows <= ROUNDING * rows).all() & (lost_cols <= ROUNDING * cols).all()
    known, fits = torch.stack((finite, kept)).tolist()
    if not known:
        raise PlanError('a or b holds an infinity or NaN; precision="fp32-accurate" needs finite entries')
    if not fits:
        raise PlanError(
            'entries along k are too far apart for precision="fp32-accurate"; scale columns of a and rows of b by '
            "powers of two, or leave precision away"
        )


SMALLER = 2.0**-32
"""A factor that keeps sums of |A| |B| within float32."""

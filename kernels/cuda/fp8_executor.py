"""Executor of products in e4m3 with block scales on tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...errors import PlanError
from ..out import check_out
from ..prepared_operand import PreparedOperand
from ..request import Request
from .fp8 import (
    missing_block_scales,
    missing_fp8,
    multiply_by_vendor,
    multiply_quantised,
    packed_bytes,
    packed_columns,
    quantised_rows,
    unpacked,
)
from .stack import missing_accelerator
from .vendor import VendorExecutor

Tensor = Any


@dataclass(frozen=True)
class Fp8Method:
    """Kernels that compute out (m, n) from A (m, k) and the `packed_columns` of B (k, n).

    `missing` returns the reason why a torch device cannot run them, or None.
    """

    run: Callable[[Tensor, Tensor, Tensor], None]
    missing: Callable[[Any], str | None]


def _by_blocks(a: Tensor, b: Tensor, out: Tensor) -> None:
    multiply_quantised(quantised_rows(a), unpacked(b, a.shape[1], out.shape[1]), out)


def _by_vendor(a: Tensor, b: Tensor, out: Tensor) -> None:
    multiply_by_vendor(quantised_rows(a), unpacked(b, a.shape[1], out.shape[1]), out)


METHODS = {
    "fp8-blocked": Fp8Method(_by_blocks, missing_accelerator),
    "fp8-vendor": Fp8Method(_by_vendor, missing_block_scales),
}
"""The methods by the names of their strategies."""


class Fp8Executor:
    """Runs a dense product in e4m3 by a method. Thread-safe and deterministic."""

    def __init__(self, request: Request, method: Fp8Method, workspace: int) -> None:
        self.request, self.workspace, self._method = request, workspace, method

    def prepare(self, b: Tensor) -> PreparedOperand:
        """Return B (k, n) with its e4m3 values and scales, to pass to `run` instead of B, of any of METHODS."""
        packed = packed_columns(b)
        return PreparedOperand(b, packed, packed.nbytes)

    def fits(self, packed: Tensor) -> bool:
        """Return whether this may be the result of `prepare` of a B of the request, by its dtype and size."""
        import torch

        return packed.dtype == torch.uint8 and tuple(packed.shape) == (packed_bytes(*self.request.shape[1:]),)

    def run(self, a: Tensor, b: Tensor | PreparedOperand, out: Tensor | None = None) -> Tensor:
        """Compute C = A B in `out`, or in a new tensor; b may be its `prepare`.

        On a device that does not multiply e4m3 the product is the vendor's, with a warning.

        Raises:
            PlanError: the tensors do not match the request.
        """
        import torch

        request = self.request
        m, k, n = request.shape
        right = b.b if isinstance(b, PreparedOperand) else b
        wanted = getattr(torch, request.dtype)
        if tuple(a.shape) != (m, k) or tuple(right.shape) != (k, n) or {a.dtype, right.dtype} != {wanted}:
            raise PlanError(f"the plan is for {request.dtype} matrices {m}x{k} and {k}x{n}; plan again")
        if out is not None:
            check_out(out, (m, n), a.dtype, a.device)
        if missing := missing_fp8(a.device) or self._method.missing(a.device):
            warnings.warn(f"{missing}: the product is the vendor's", stacklevel=2)
            return VendorExecutor(strict=True).run(a, right, out)
        packed = b.sums if isinstance(b, PreparedOperand) else packed_columns(b)
        result = a.new_empty((m, n)) if out is None else out
        self._method.run(a, packed, result)
        return result

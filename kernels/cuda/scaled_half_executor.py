"""Executor of products in tf32 by scaled float16 on tensors."""

from __future__ import annotations

import warnings
from typing import Any

from ..out import shares_storage
from ..precision import TF32
from ..prepared_operand import PreparedOperand
from ..request import Request
from .dtypes import vendor_precision
from .executor import require_float32
from .scaled_half import packed, packed_bytes, scaled_half_product, unpacked
from .stack import missing_accelerator
from .vendor import VendorExecutor

Tensor = Any


class ScaledHalfExecutor:
    """Runs a dense product of float32 matrices in tf32 by `scaled_half_product`. Thread-safe and deterministic."""

    def __init__(self, request: Request, workspace: int) -> None:
        self.request, self.workspace = request, workspace

    def prepare(self, b: Tensor) -> PreparedOperand:
        """Return B (k, n) with its scaled float16, to pass to `run` instead of B, for any number of rows of A."""
        made = packed(b)
        return PreparedOperand(b, made, made.nbytes)

    def fits(self, made: Tensor) -> bool:
        """Return whether this may be the result of `prepare` of a B of the request, by its dtype and size."""
        import torch

        return made.dtype == torch.uint8 and tuple(made.shape) == (packed_bytes(*self.request.shape[1:]),)

    def run(self, a: Tensor, b: Tensor | PreparedOperand, out: Tensor | None = None) -> Tensor:
        """Compute C = A B in `out`, or in a new tensor; b may be its `prepare`.

        On a device without a tensor memory accelerator the product is the vendor's, with a warning.

        Raises:
            PlanError: the tensors do not match the request.
        """
        m, k, n = self.request.shape
        right = b.b if isinstance(b, PreparedOperand) else b
        require_float32(self.request, a, right, out)
        if missing := missing_accelerator(a.device):
            warnings.warn(f"{missing}: the product is the vendor's", stacklevel=2)
            with vendor_precision(TF32):
                return VendorExecutor().run(a, right, out)
        # The operands may be read again after C was written.
        fresh = out is None or shares_storage(out, a) or shares_storage(out, right)
        result = a.new_empty((m, n)) if fresh else out
        scaled = unpacked(b.sums, k, n) if isinstance(b, PreparedOperand) else None
        scaled_half_product(a, right, result, scaled)
        return result if out is None or out is result else out.copy_(result)

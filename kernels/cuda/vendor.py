"""The vendor's own product of tensors."""

from __future__ import annotations

from typing import Any

from .dtypes import vendor_precision

Tensor = Any


class VendorExecutor:
    """torch.matmul, which calls cuBLAS; with `strict` float32 is never rounded to tf32."""

    workspace = 0

    def __init__(self, strict: bool = False) -> None:
        self._strict = strict

    def run(self, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        """Compute C = A B in `out`, or in a new tensor."""
        import torch

        if not self._strict:
            return torch.matmul(a, b, out=out)
        with vendor_precision("float32"):
            return torch.matmul(a, b, out=out)

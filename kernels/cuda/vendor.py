"""The vendor's own product of tensors."""

from __future__ import annotations

from ..arrays import Tensor, torch
from ..out import check_out, shares_storage
from ..precision import TF32
from ..request import Request, matmul_shape
from .dtypes import vendor_precision


class VendorExecutor:
    """torch.matmul, which calls cuBLAS; with `strict` float32 is never rounded to tf32."""

    workspace = 0

    def __init__(self, strict: bool = False) -> None:
        self._strict = strict

    @classmethod
    def of(cls, request: Request) -> VendorExecutor:
        """Return the executor of a request; without a product of its precision the vendor multiplies strictly."""
        return cls(strict=request.dtype == "float32" and request.precision not in (None, TF32))

    def run(self, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        """Compute C = A B in `out`, or in a new tensor.

        Raises:
            PlanError: `out` is refused by `check_out`.
        """
        if out is not None:
            check_out(out, matmul_shape(tuple(a.shape), tuple(b.shape)), a.dtype, a.device)
            # torch.matmul overwrites operands before it has read them, and refuses strides of batches that do not fold.
            strided = out.dim() > 2 and not out.is_contiguous()
            if strided or shares_storage(out, a) or shares_storage(out, b):
                return out.copy_(self.run(a, b))

        if not self._strict:
            return torch.matmul(a, b, out=out)
        with vendor_precision("float32"):
            return torch.matmul(a, b, out=out)

    def again(self, a: Tensor, b: Tensor) -> Tensor:
        """Compute C = A B in a new tensor, where torch's current setting of tf32 is that of the request."""
        return torch.matmul(a, b)

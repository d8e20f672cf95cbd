"""Executor of products by float16 halves on tensors."""

from __future__ import annotations

import warnings
from typing import Any

from ..out import shares_storage
from ..request import Request
from .executor import require_float32
from .float16_pairs import split_product
from .float16_pairs_level import SplitLevel
from .stack import missing_accelerator
from .vendor import VendorExecutor

Tensor = Any


class SplitExecutor:
    """Runs a dense product of float32 matrices by halves, with or without levels of a scheme; see `split_product`."""

    def __init__(self, request: Request, workspace: int, level: SplitLevel | None = None) -> None:
        self.request, self.workspace, self._level = request, workspace, level

    def run(self, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        """Compute C = A B in `out`, or in a new tensor.

        Raises:
            PlanError: the tensors do not match the request, or `split_product` refuses their entries.
        """
        m, _, n = self.request.shape
        require_float32(self.request, a, b, out)
        if missing := missing_accelerator(a.device):
            warnings.warn(f"{missing}: the product is the vendor's", stacklevel=2)
            return VendorExecutor(strict=True).run(a, b, out)
        # The operands may be read again after C was written.
        result = a.new_empty((m, n)) if out is None or shares_storage(out, a) or shares_storage(out, b) else out
        if self._level is None:
            split_product(a, b, result)
        else:
            self._level.run(a, b, result)
        return result if out is None or out is result else out.copy_(result)

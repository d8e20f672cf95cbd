"""Executor of int8 products of tensors whose largest magnitude is stated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...errors import PlanError
from ..out import check_out, shares_storage
from ..overflow import require_within
from ..prepared_operand import PreparedOperand
from ..request import Request
from .int8 import multiply_by_vendor
from .int8_operands import multiply, packed_columns, vendor_operand

Tensor = Any

EVERY = 128
"""The magnitude that no int8 exceeds: it needs no check of the entries."""


@dataclass(frozen=True)
class Int8Method:
    """A sequence of kernels: `run` computes out (m, n) int32 from A (m, k) and the result of `pack` of B (k, n)."""

    run: Callable[[Tensor, Tensor, Tensor], None]
    pack: Callable[[Tensor], Tensor]


BY_VENDOR = Int8Method(multiply_by_vendor, partial(vendor_operand, copies=True))
"""torch's `_int_mm` of a B stored by columns: one stored by rows is copied first."""

BY_VENDOR_IN_PLACE = Int8Method(multiply_by_vendor, partial(vendor_operand, copies=False))
"""torch's `_int_mm` of B as it is stored, unless its rules need zeros: for products shorter than a copy."""

BY_KERNEL = Int8Method(multiply, packed_columns)
"""Our kernel, for any sizes."""


class Int8Executor:
    """Multiplies int8 tensors into int32 by a method, the matrices of a batch one after the other. Thread-safe.

    Entries are compared with the stated `max_abs` if it is below 128: the host waits for that, behind the product, and
    `out` holds anything if they exceed it.
    """

    def __init__(self, request: Request, method: Int8Method, workspace: int) -> None:
        self.request, self.workspace, self._method = request, workspace, method

    def prepare(self, b: Tensor) -> PreparedOperand:
        """Return one matrix B (k, n) with what the method computes from it, to pass to `run` instead of B.

        Raises:
            PlanError: an entry exceeds the stated `max_abs`.
        """
        self._check("b", _largest([b]) if self._bounded and not b.is_meta else None)
        packed = self._method.pack(b)
        return PreparedOperand(b, packed, packed.nbytes)

    def run(self, a: Tensor, b: Tensor | PreparedOperand, out: Tensor | None = None) -> Tensor:
        """Compute C = A B in `out`, or in a new tensor; b may be its `prepare`.

        Raises:
            PlanError: the tensors do not match the request, or an entry exceeds the stated `max_abs`.
        """
        import torch

        request = self.request
        prepared = isinstance(b, PreparedOperand)
        right = b.b if isinstance(b, PreparedOperand) else b
        shapes = ((*request.batch_a, request.m, request.k), (*request.batch_b, request.k, request.n))
        if (tuple(a.shape), tuple(right.shape)) != shapes or {a.dtype, right.dtype} != {torch.int8}:
            raise PlanError(f"the plan is for int8 tensors of the shapes {shapes[0]} and {shapes[1]}; plan again")
        shape = (*request.batch, request.m, request.n)
        if out is not None:
            check_out(out, shape, torch.int32, a.device)
        apart = out is None or any(shares_storage(out, x) for x in (a, right))
        result = torch.empty(shape, dtype=torch.int32, device=a.device) if out is None or apart else out
        if 0 in (*request.shape, *request.batch):
            result.zero_()
        else:
            bounded = self._bounded and not a.is_meta
            # Queued before the product, and read behind it.
            largest = _largest([a] if prepared else [a, right]) if bounded else None
            lefts = a.expand(*request.batch, *a.shape[-2:])
            rights = right.expand(*request.batch, *right.shape[-2:])
            packed = b.sums if isinstance(b, PreparedOperand) else None
            for index in np.ndindex(request.batch):
                sums = self._method.pack(rights[index]) if packed is None else packed
                self._method.run(lefts[index], sums, result[index])
            self._check("a" if prepared else "a or b", largest)
        return result if out is None or out is result else out.copy_(result)

    @property
    def _bounded(self) -> bool:
        return self.request.max_abs is not None and self.request.max_abs < EVERY

    def _check(self, label: str, extremes: Tensor | None) -> None:
        if extremes is None:
            return
        require_within(label, max(abs(value) for value in extremes.tolist()), self.request.max_abs or 0)


def _largest(tensors: list[Tensor]) -> Tensor:
    """Return the least and the largest entries of all tensors, without waiting for them."""
    import torch

    # torch copies an operand that is not stored by rows first.
    stored = [tensor.mT if tensor.stride(-2) == 1 else tensor for tensor in tensors]
    return torch.stack([one for tensor in stored for one in torch.aminmax(tensor)])

"""The core of products in an arithmetic of its own: B is packed, and kernels multiply A by that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Tensor, torch
from ..overflow import require_within
from ..planning.strategy import PreparedOperand
from ..precision import TF32
from ..request import Request
from .dtypes import vendor_precision
from .executor import TensorCore, TensorExecutor, VendorExecutor

EVERY = 128
"""The magnitude that no int8 exceeds: it needs no check of the entries."""


@dataclass(frozen=True)
class PackedArithmetic:
    """The kernels of an arithmetic.

    `multiply(a, b, packed, out)` computes out (m, n) from A (m, k), B (k, n) and `pack(b)` (None: B is not packed).
    `packed_bytes(k, n)`: the size of a packed B if that is bytes, for any number of rows of A. For `missing` see
    `TensorCore`. `width`: stored elements of a row of so many columns. `by_rows`: rows of C must be contiguous.
    """

    multiply: Callable[[Tensor, Tensor, Tensor, Tensor], object]
    pack: Callable[[Tensor], Tensor] | None = None
    packed_bytes: Callable[[int, int], int] | None = None
    missing: Callable[[Any], str | None] = lambda device: None
    width: Callable[[int], int] = lambda cols: cols
    by_rows: bool = False


class PackedProduct(TensorCore):
    """Multiplies the matrices of a request by an arithmetic, one after the other.

    Entries are compared with the stated `max_abs`, those of int8 if it is below 128: the host waits for that, behind
    the product, and C is undefined if they exceed it.
    """

    def __init__(self, request: Request, arithmetic: PackedArithmetic) -> None:
        super().__init__(request, arithmetic.width)
        self._arithmetic = arithmetic
        self.prepares = arithmetic.packed_bytes is not None
        same = request.ring is None and request.result == request.storage
        self.dtype = None if same else "int32" if request.ring is None else "int64"
        all_fit = request.ring is None and request.max_abs is not None and request.max_abs >= EVERY
        self._bounded = request.max_abs is not None and not all_fit

    def writes(self, out: Tensor) -> bool:
        return not self._arithmetic.by_rows or out.stride(-1) == 1

    def missing(self, device: Any) -> str | None:
        return self._arithmetic.missing(device)

    def instead(self, a: Tensor, b: Tensor, out: Tensor | None) -> Tensor:
        """See `TensorCore.instead`: in tf32 if that is the request's, else strictly."""
        if self.request.precision != TF32:
            return VendorExecutor(strict=True).run(a, b, out)
        with vendor_precision(TF32):
            return VendorExecutor().run(a, b, out)

    def prepare(self, b: Tensor) -> PreparedOperand:
        """See `TensorCore.prepare`: one matrix B (k, n), packed.

        Raises:
            PlanError: an entry exceeds the stated `max_abs`, or B is not packed.
        """
        if self._arithmetic.pack is None:
            return super().prepare(b)
        self._require_within("b", self._largest([b]))
        packed = self._arithmetic.pack(b)
        return PreparedOperand(b, packed, packed.nbytes)

    def fits(self, prepared: Tensor) -> bool:
        size = self._arithmetic.packed_bytes
        return size is not None and prepared.dtype == torch.uint8 and tuple(prepared.shape) == (size(*self.shapes[1]),)

    def run(self, a: Tensor, b: Tensor | PreparedOperand, out: Tensor) -> None:
        """See `TensorCore.run`.

        Raises:
            PlanError: an entry exceeds the stated `max_abs`, or the arithmetic refuses one.
        """
        batch, pack = self.request.batch, self._arithmetic.pack
        right, packed = (b.b, b.sums) if isinstance(b, PreparedOperand) else (b, None)
        # Queued before the product, and read behind it.
        largest = self._largest([a, right] if packed is None else [a])
        lefts, rights = (x.expand(*batch, *x.shape[-2:]) for x in (a, right))
        for index in np.ndindex(batch):
            sums = pack(rights[index]) if packed is None and pack is not None else packed
            self._arithmetic.multiply(lefts[index], rights[index], sums, out[index])
        self._require_within("a or b" if packed is None else "a", largest)

    def _largest(self, tensors: list[Tensor]) -> Tensor | None:
        """Return the least and the largest entries of all tensors, without waiting for them; None: all are allowed."""
        if not self._bounded or tensors[0].is_meta:
            return None
        # torch copies an operand that is not stored by rows first.
        stored = [tensor.mT if tensor.stride(-2) == 1 else tensor for tensor in tensors]
        return torch.stack([one for tensor in stored for one in torch.aminmax(tensor)])

    def _require_within(self, label: str, extremes: Tensor | None) -> None:
        if extremes is not None:
            require_within(label, max(abs(value) for value in extremes.tolist()), self.request.max_abs or 0)


def packed_executor(request: Request, arithmetic: PackedArithmetic, workspace: int) -> TensorExecutor:
    """Return the executor of an arithmetic."""
    return TensorExecutor(request, PackedProduct(request, arithmetic), workspace)

"""The core of triangular products of tensors: batches, shared operands, and a low-memory fallback."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from ...errors import PlanError
from ..arrays import Tensor, torch
from ..request import Request
from .executor import TensorCore, TensorExecutor

One = Callable[[Tensor, Tensor, Tensor], object]
"""One product: a (m, k), b (k, n), out (m, n)."""

All = Callable[[Tensor, Tensor, Tensor], object]
"""All products of a batch: a (items, m, k), b (items / heads, k, n), out (items, m, n)."""


class TriangularProduct(TensorCore):
    """Runs a triangular product on every pair of matrices, by one call for all or one call each.

    C is zero outside a wanted triangle. A right factor is executed as the left one of the transposed product. `spare`
    computes one product with little memory, if the device has too little for `one`.
    """

    def __init__(self, request: Request, one: One | None, every: All | None, spare: One | None = None) -> None:
        self.request, self._one, self._every, self._spare = request, one, every, spare
        triangle = request.triangle
        assert triangle is not None  # checked by the strategy
        self._turned = triangle.side == "right"

    def writes(self, out: Tensor) -> bool:
        return bool(out.is_contiguous())

    def run(self, a: Tensor, b: Tensor, out: Tensor) -> None:
        """See `TensorCore.run`.

        Raises:
            PlanError: the device has too little memory.
        """
        if self._turned:
            a, b, out = b.mT, a.mT, out.mT
        batch = self.request.batch
        # `out` is contiguous or the transpose of such: its leading sizes fold without a copy.
        items_out = out.flatten(0, -3) if batch else out[None]
        items_a = a.expand(*batch, *a.shape[-2:]).reshape(-1, *a.shape[-2:]) if batch else a[None]
        items_b, heads = _shared(b, batch)
        if self._every is not None:
            self._every(items_a, items_b, out=items_out)  # type: ignore[call-arg]
            return
        assert self._one is not None
        for i in range(len(items_a)):
            self._within_memory(items_a[i], items_b[i // heads], items_out[i])

    def _within_memory(self, a: Tensor, b: Tensor, out: Tensor) -> None:
        assert self._one is not None
        try:
            self._one(a, b, out)
            return
        except torch.OutOfMemoryError:
            if self._spare is None:
                raise PlanError(f"{self.request} does not fit in the memory of {a.device}") from None
            warnings.warn(f"{a.device} has too little memory for the sums of a scheme: strips are run", stacklevel=4)
        self._spare(a, b, out)


def triangular_executor(
    request: Request, one: One | None, every: All | None, workspace: int, spare: One | None = None
) -> TensorExecutor:
    """Return the executor of a triangular product; see `TriangularProduct`."""
    return TensorExecutor(request, TriangularProduct(request, one, every, spare), workspace)


def _shared(b: Tensor, batch: tuple[int, ...]) -> tuple[Tensor, int]:
    """Return b as (items / heads, k, n), each for `heads` consecutive items (1 unless trailing axes broadcast)."""
    if not batch:
        return b[None], 1
    sizes = (*[1] * (len(batch) - (b.dim() - 2)), *b.shape[:-2])
    heads, axis = 1, len(batch)
    while axis and sizes[axis - 1] == 1:
        axis -= 1
        heads *= batch[axis]
    if tuple(sizes[:axis]) == tuple(batch[:axis]):
        return b.reshape(-1, *b.shape[-2:]), heads
    return b.expand(*batch, *b.shape[-2:]).reshape(-1, *b.shape[-2:]), 1

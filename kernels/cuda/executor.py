"""Executors on tensors: checks, batches, `out`, prepared operands, and fallbacks for too little memory."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

from ...errors import PlanError
from ..out import check_out, shares_storage
from ..prepared_operand import PreparedOperand
from ..request import Request
from .level import CudaLevel
from .padded import PaddedProduct
from .repeated_level import RepeatedLevel
from .requests import request_of
from .shape import MAX_PIECES, Shape

Tensor = Any


class TensorExecutor:
    """Runs a core on the tensors of a request, in `pieces` one after the other. Thread-safe and deterministic.

    Memory is allocated by torch's caching allocator, so that it follows streams and graphs.
    """

    def __init__(self, request: Request, core: CudaLevel | PaddedProduct, pieces: int) -> None:
        self.request, self._core, self.pieces = request, core, pieces
        self._shapes = tuple(
            (*request.batch, *sizes)
            for sizes in ((request.m, request.k), (request.k, request.n), (request.m, request.n))
        )
        self._empty = Shape.of(request).empty
        self._repeated: RepeatedLevel | None = None

    @property
    def workspace(self) -> int:
        """Bytes of the stacks of one run, if both operands are batched and B is not prepared."""
        shape = Shape.of(self.request)
        core = self._core
        return 0 if shape.empty else shape.stack_bytes(core.target, core.slabs, self.pieces)

    def prepare(self, b: Tensor) -> PreparedOperand:
        """Return B (..., k, n) with its sums, to pass to `run` instead of B."""
        made = self._core.prepare(_folded(b))
        return PreparedOperand(b, made.sums, made.nbytes)

    def fits(self, stack: Tensor) -> bool:
        """Return whether the shape is that of this executor's B~; only for a result of `prepare` of the same b."""
        request = self.request
        return tuple(stack.shape) == self._core.prepared_shape(request.k, request.n, request.itemsize)

    def run(self, a: Tensor, b: Tensor | PreparedOperand, out: Tensor | None = None) -> Tensor:
        """Compute C = A B in `out`, or in a new tensor. a is (..., m, k), b (..., k, n) or its `prepare`.

        Raises:
            PlanError: the tensors do not match the request, or the device has too little memory.
        """
        import torch

        request = self.request
        first, second, wanted = self._shapes
        # Equal shapes suffice; all else, for example a broadcast batch, is checked in detail.
        known = out is None and not isinstance(b, PreparedOperand) and (a.shape, b.shape) == (first, second)
        if not known or not _alike(a, b):
            check_operands(request, a, b, out, wanted)
        result = a.new_empty(wanted) if out is None else out
        if self._empty:
            return result.zero_()
        if out is not None and any(shares_storage(out, x) for x in (a, b) if not isinstance(x, PreparedOperand)):
            result = torch.empty_like(out, memory_format=torch.contiguous_format)
        left = _folded(a, request.batch)
        right = b if isinstance(b, PreparedOperand) else _folded(b, request.batch)
        if result.dim() == 2:
            folded = result.unsqueeze(0)
        else:
            folded = result if result.dim() == 3 else result.reshape(-1, request.m, request.n)
        self._within_memory(left, right, folded)
        if folded.data_ptr() != result.data_ptr():  # a batch whose strides do not fold was copied
            result.copy_(folded.view(wanted))
        return result if out is None or out is result else out.copy_(result)

    def again(self, a: Tensor, b: Tensor) -> Tensor:
        """Compute C = A B as `run` does, of tensors with the shapes and dtypes of a run, without its checks."""
        import torch

        if self.request.batch or self._empty:
            return self.run(a, b)
        if (repeated := self._repeated) is not None and repeated.fits(a, b):
            with contextlib.suppress(torch.OutOfMemoryError):
                return repeated(a, b)
        result = a.new_empty(self._shapes[2])
        self._within_memory(a.unsqueeze(0), b.unsqueeze(0), result.unsqueeze(0))
        if self.pieces == 1 and isinstance(self._core, CudaLevel):
            self._repeated = RepeatedLevel.of(self._core, a, b, result)
        return result

    def _within_memory(self, a: Tensor, b: Tensor | PreparedOperand, out: Tensor) -> None:
        """Run in the planned number of pieces; in more, with a warning, if the device has too little memory."""
        import torch

        pieces = self.pieces
        while True:
            try:
                return self._core.run(a, b, out, pieces)
            except torch.OutOfMemoryError:
                pieces *= 2
                if pieces > MAX_PIECES:
                    raise PlanError(
                        f"{self.request} does not fit in the memory of {a.device}; give max_workspace"
                    ) from None
                warnings.warn(f"{a.device} has too little memory: {self.request} runs in {pieces} pieces", stacklevel=3)


def check_operands(
    request: Request, a: Tensor, b: Tensor | PreparedOperand, out: Tensor | None, wanted: tuple[int, ...]
) -> None:
    """Raise PlanError if tensors do not match a request, or `out` cannot store the result."""
    if isinstance(b, PreparedOperand):
        if tuple(b.b.shape[-2:]) != (request.k, request.n) or tuple(a.shape) != (*request.batch, request.m, request.k):
            raise PlanError(f"the plan is for {request}, not for these operands; plan again")
    else:
        actual = request_of(a, b, request.precision)
        if (actual.shape, actual.dtype, actual.batch) != (request.shape, request.dtype, request.batch):
            raise PlanError(f"the plan is for {request}, not for {actual}; plan again")
    if out is not None:
        check_out(out, wanted, a.dtype, a.device)


def _folded(x: Tensor, batch: tuple[int, ...] | None = None) -> Tensor:
    """Return the tensor as (items, rows, cols); 1 item if all matrices of the batch are the same one."""
    if x.dim() == 2:
        return x.unsqueeze(0)
    if x.dim() == 3 and (batch is None or len(batch) == 1) and (x.shape[0] == 1 or batch in (None, (x.shape[0],))):
        return x
    if all(size == 1 for size in x.shape[:-2]):
        return x.reshape(1, *x.shape[-2:])
    whole = x if batch is None else x.expand(*batch, *x.shape[-2:])
    return whole.reshape(-1, *x.shape[-2:])


def _alike(a: Tensor, b: Tensor) -> bool:
    return bool(a.dtype == b.dtype and a.device == b.device)


def require_float32(request: Request, a: Tensor, b: Tensor, out: Tensor | None) -> None:
    """Require float32 operands, and a result if one is given, of the sizes of a request for one product.

    Raises:
        PlanError: a tensor does not match.
    """
    import torch

    m, k, n = request.shape
    if tuple(a.shape) != (m, k) or tuple(b.shape) != (k, n) or {a.dtype, b.dtype} != {torch.float32}:
        raise PlanError(f"the plan is for float32 matrices {m}x{k} and {k}x{n}; plan again")
    if out is not None:
        check_out(out, (m, n), a.dtype, a.device)

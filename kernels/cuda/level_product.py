"""The core of dense products by a level, or by the vendor with padding: batches, pieces, and too little memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from ...errors import PlanError
from ..arrays import Tensor, torch
from ..planning.strategy import PreparedOperand
from ..request import Request
from .executor import TensorCore, TensorExecutor
from .level import CudaLevel, PaddedProduct
from .shape import MAX_PIECES, pieces_within, stack_bytes


class LevelProduct(TensorCore):
    """Runs a level on all matrices of a request, in `pieces` one after the other."""

    prepares = repeats = True

    def __init__(self, request: Request, level: CudaLevel, pieces: int) -> None:
        super().__init__(request)
        self._level, self.pieces = level, pieces

    def prepare(self, b: Tensor) -> PreparedOperand:
        """See `TensorCore.prepare`: B with its sums."""
        made = self._level.prepare(_folded(b))
        return PreparedOperand(b, made.sums, made.nbytes)

    def fits(self, prepared: Tensor) -> bool:
        request = self.request
        return tuple(prepared.shape) == self._level.prepared_shape(request.k, request.n, request.itemsize)

    def run(self, a: Tensor, b: Tensor | PreparedOperand, out: Tensor) -> None:
        """See `TensorCore.run`. In more than the planned pieces, with a warning, if the device has too little memory.

        Raises:
            PlanError: the device has too little memory.
        """
        batch, pieces = self.request.batch, self.pieces
        left = _folded(a, batch)
        right = b if isinstance(b, PreparedOperand) else _folded(b, batch)
        folded = out.unsqueeze(0) if out.dim() == 2 else out if out.dim() == 3 else out.reshape(-1, *out.shape[-2:])
        while True:
            try:
                self._level.run(left, right, folded, pieces)
                break
            except torch.OutOfMemoryError:
                pieces *= 2
                if pieces > MAX_PIECES:
                    raise PlanError(
                        f"{self.request} does not fit in the memory of {a.device}; give max_workspace"
                    ) from None
                warnings.warn(f"{a.device} has too little memory: {self.request} runs in {pieces} pieces", stacklevel=3)
        if folded.data_ptr() != out.data_ptr():  # a batch whose strides do not fold was copied
            out.copy_(folded.view(out.shape))

    def repetition(self, a: Tensor, b: Tensor, out: Tensor) -> Callable[[Tensor, Tensor], Tensor | None] | None:
        """See `TensorCore.repetition`: of single matrices in one piece."""
        if self.request.batch or self.pieces > 1 or isinstance(self._level, PaddedProduct):
            return None
        return self._level.repetition(a, b, out)


def level_executor(request: Request, level: CudaLevel) -> TensorExecutor:
    """Return the executor of a level in as few pieces as the workspace of the request permits.

    Kernels are compiled at the first run, for the strides of its tensors.

    Raises:
        PlanError: the request cannot be run within its workspace.
    """
    if (pieces := pieces_of(request, level)) is None:
        raise PlanError(f"{request} does not fit in {request.max_workspace} bytes of workspace")
    return TensorExecutor(request, LevelProduct(request, level, pieces), level_workspace(request, level))


def pieces_of(request: Request, level: CudaLevel) -> int | None:
    """Return the pieces in which a level runs a request within its workspace; None: not in any number of them."""
    return 1 if request.is_empty else pieces_within(request, level.target, level.rank, request.max_workspace)


def level_workspace(request: Request, level: CudaLevel) -> int:
    """Return the bytes of the stacks of a level; exact if both operands have equal batches, else an upper bound."""
    pieces = pieces_of(request, level) or MAX_PIECES
    return 0 if request.is_empty else stack_bytes(request, level.target, level.rank, pieces)


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

"""The executor of exact products of tensors: checks, batches, `out`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import PlanError
from ..out import check_out, shares_storage
from ..overflow import require_within
from ..request import BITS, Request
from .bits import words_of
from .executor import largest_magnitude
from .tensor_levels import IntegerTensorCore
from .tensors import BitTensorCore

Tensor = Any


class ExactTensorExecutor:
    """Runs a core on every matrix of a request; `core` is None if the request is empty. Thread-safe.

    Over GF(2) tensors are words (..., rows, words) int64, as `BitMatrix.words`; else integers, and C is int64.
    """

    def __init__(self, request: Request, core: BitTensorCore | IntegerTensorCore | None) -> None:
        self.request, self._core = request, core

    @property
    def workspace(self) -> int:
        """See `Executor.workspace`."""
        return 0 if self._core is None else self._core.workspace

    def run(self, a: Tensor, b: Tensor, out: Tensor = None) -> Tensor:
        """See `Executor.run`.

        Raises:
            PlanError: the tensors do not match the request, or an entry exceeds the stated `max_abs`.
        """
        import torch

        request = self.request
        bits = request.dtype == BITS
        k, n = (words_of(x) if bits else x for x in (request.k, request.n))
        self._check("a", a, (*request.batch_a, request.m, k))
        self._check("b", b, (*request.batch_b, request.k, n))
        if a.device != b.device:
            raise PlanError(f"a is on {a.device} and b on {b.device}; move one with .to")
        shape = (*request.batch, request.m, n)
        if out is not None:
            check_out(out, shape, torch.int64, a.device)
        if self._core is None:
            return torch.zeros(shape, dtype=torch.int64, device=a.device) if out is None else out.zero_()
        # A core writes contiguous rows, and reads the operands after its first writes.
        direct = out is not None and out.stride(-1) == 1 and not any(shares_storage(out, x) for x in (a, b))
        made = out if direct else torch.empty(shape, dtype=torch.int64, device=a.device)
        left = a.expand(*request.batch, request.m, k)
        right = b.expand(*request.batch, request.k, n)
        for index in np.ndindex(request.batch):
            self._core.run(_integers(left[index]), _integers(right[index]), made[index])
        return made if out is None or direct else out.copy_(made)

    def _check(self, label: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
        import torch

        request = self.request
        wanted = torch.int64 if request.dtype == BITS else getattr(torch, request.dtype)
        if not torch.is_tensor(tensor) or tensor.dtype != wanted:
            found = getattr(tensor, "dtype", type(tensor).__name__)
            raise PlanError(f"{label} is {found}; the plan is for tensors of {wanted}: convert with .to")
        if tuple(tensor.shape) != shape:
            raise PlanError(f"{label} is of shape {tuple(tensor.shape)}; the plan is for {shape}: plan again")
        if request.max_abs is not None and tensor.numel():
            require_within(label, largest_magnitude(tensor), request.max_abs)


def _integers(matrix: Tensor) -> Tensor:
    import torch

    return matrix if matrix.dtype == torch.int64 else matrix.to(torch.int64)

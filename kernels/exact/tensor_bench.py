"""Timing of exact candidates on a GPU: operands and checks of the CPU, timed by the GPU's clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import Tensor, torch
from ..cuda.bench import CudaBench
from ..request import BITS, Request
from .bench import ExactBench
from .bits import BitMatrix

PINNED = 1 << 20
"""Arrays from this size are copied through pinned memory, which torch caches: copies are several times as fast."""


class ExactTensorBench(ExactBench):
    """`ExactBench` on a GPU."""

    def operands(self, request: Request, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        a, b, c = (to_tensor(x) for x in super().operands(request, seed))
        return a, b, c

    def errors(self, request: Request, a: Tensor, b: Tensor) -> Callable[[Tensor], float]:
        left, right = (to_host(x, cols, request) for x, cols in ((a, request.k), (b, request.n)))
        differing = super().errors(request, left, right)
        return lambda c: differing(to_host(c, request.n, request))

    def interleaved(self, calls: Mapping[str, Callable[[], object]], rounds: int) -> Mapping[str, Sequence[float]]:
        return CudaBench().interleaved(calls, rounds)


def to_tensor(matrix: Any, device: str = "cuda") -> Tensor:
    """Copy an array, or the words of a bit matrix, to a GPU."""
    held = matrix.words.view(np.int64) if isinstance(matrix, BitMatrix) else np.asarray(matrix)
    # torch cannot represent a read-only (memory-mapped) array: it is copied.
    given = torch.from_numpy(np.require(held, requirements=["C", "W"]))
    if device == "cpu" or given.nbytes < PINNED:
        return given.to(device)
    pinned = torch.empty(given.shape, dtype=given.dtype, pin_memory=True)
    return pinned.copy_(given).to(device, non_blocking=True)


def to_host(tensor: Tensor, cols: int, request: Request) -> Any:
    """Undo `to_tensor`, for a matrix of so many columns."""
    if tensor.is_cuda and tensor.nbytes >= PINNED:
        held = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor)
    else:
        held = tensor.cpu()
    array = held.numpy()
    return BitMatrix(array.view(np.uint64), cols) if request.dtype == BITS else array

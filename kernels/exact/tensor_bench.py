"""Timing of exact candidates on a GPU: the operands and checks of a processor, the GPU's own clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..cuda.bench import CudaBench
from ..planning.strategy import Plan
from ..request import BITS, Request
from .bench import ExactBench
from .bits import BitMatrix

Tensor = Any


class ExactTensorBench:
    """A `planning.tune.Bench`; the error of a product is the part of the checked entries that are wrong."""

    def operands(self, request: Request, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        """See `Bench.operands`: uniformly random entries."""
        a, b, c = (to_tensor(x) for x in ExactBench().operands(request, seed))
        return a, b, c

    def precompile(self, plans: Sequence[Plan], on_event: Callable[[str], None]) -> None:
        """See `Bench.precompile`: the few kernels are compiled at their first run."""

    def errors(self, request: Request, a: Tensor, b: Tensor) -> Callable[[Tensor], float]:
        """See `Bench.errors`: on some rows of the first matrix."""
        host = ExactBench().errors(request, to_host(a, request.k, request), to_host(b, request.n, request))
        return lambda c: host(to_host(c, request.n, request))

    def interleaved(self, calls: Mapping[str, Callable[[], object]], rounds: int) -> Mapping[str, Sequence[float]]:
        """See `Bench.interleaved`."""
        return CudaBench().interleaved(calls, rounds)


def to_tensor(matrix: Any, device: str = "cuda") -> Tensor:
    """An array, or the words of a bit matrix, on a GPU."""
    import torch

    held = matrix.words.view(np.int64) if isinstance(matrix, BitMatrix) else np.asarray(matrix)
    # A mapped file is read-only, which torch does not know: it is copied.
    return torch.from_numpy(np.require(held, requirements=["C", "W"])).to(device)


def to_host(tensor: Tensor, cols: int, request: Request) -> Any:
    """The inverse, of so many columns."""
    array = tensor.cpu().numpy()
    return BitMatrix(array.view(np.uint64), cols) if request.dtype == BITS else array

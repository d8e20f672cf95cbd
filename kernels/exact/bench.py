"""Timing of exact candidates: operands, checks, and interleaved calls; on a GPU those of the CPU by its own clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import Tensor, torch
from ..cpu.bench import in_turns
from ..request import BITS, WIDE, Request
from .bits import BitMatrix
from .integers import empty_integers
from .naive import product_by_parts, xored_rows
from .strategy import max_abs_of

CHECKED = 4
"""Number of rows of C that are compared with Python integers."""


class ExactBench:
    """A `planning.planner.Bench`; the error of a product is the fraction of the checked entries that are wrong."""

    def operands(self, request: Request, seed: int) -> tuple[Any, Any, Any]:
        """See `Bench.operands`: uniformly random entries."""
        rng = np.random.default_rng(seed)
        *shapes, out_shape = request.shapes
        if request.dtype == BITS:
            first, second = (BitMatrix.random(*shape, seed=rng) for shape in shapes)
            return first, second, BitMatrix.zeros(*out_shape)
        assert request.ring is not None
        info = np.iinfo(request.storage)
        most = min(max_abs_of(request), info.max)
        low, high = (0, request.ring.modulus - 1) if request.ring.modulus else (-most, most)
        low, high = max(low, info.min), min(high, info.max, most)
        a, b = (rng.integers(low, high, shape, dtype=request.storage, endpoint=True) for shape in shapes)
        return a, b, empty_integers(out_shape, request.out_dtype)

    def errors(self, request: Request, a: Any, b: Any) -> Callable[[Any], float]:
        """See `Bench.errors`: the fraction of wrong entries, in some rows of the first matrix."""
        assert request.ring is not None
        rows: Any = np.unique(np.linspace(0, request.m - 1, min(request.m, CHECKED)).astype(int))
        first = (0,) * len(request.batch)
        if request.dtype == BITS:
            one, other = (BitMatrix(x.words[(0,) * (x.ndim - 2)], x.cols) for x in (a, b))
            truth = xored_rows(BitMatrix(one.words[rows], one.cols), other)
            return lambda c: float((BitMatrix(c.words[first][rows], c.cols) ^ truth).to_array().mean())
        left, right = a[(0,) * (a.ndim - 2)], b[(0,) * (b.ndim - 2)]
        wanted = product_by_parts(left[rows], right)
        wanted = wanted % request.ring.modulus if request.ring.modulus else wanted
        wide = request.out_dtype == WIDE

        def differing(c: Any) -> float:
            found = from_words(c[first][rows]) if wide else c[first][rows]
            return float((found.astype(object) != wanted).mean())

        return differing

    def interleaved(self, calls: Mapping[str, Callable[[], object]], rounds: int) -> Mapping[str, Sequence[float]]:
        return in_turns(calls, rounds)


def from_words(words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Convert two words (..., 2), the lower one first and unsigned, to Python integers."""
    low = np.ascontiguousarray(words[..., 0]).view(np.uint64).astype(object)
    return words[..., 1].astype(object) * (1 << 64) + low


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
        from ..cuda.bench import CudaBench

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

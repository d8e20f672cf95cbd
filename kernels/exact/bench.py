"""Timing of exact candidates on the CPU: operands, checks, and interleaved calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..cpu.bench import in_turns
from ..request import BITS, WIDE, Request
from .bits import BitMatrix
from .integers import empty_integers
from .naive import product_by_parts, xored_rows
from .strategy import max_abs_of

CHECKED = 4
"""Number of rows of C that are compared with Python integers."""


class ExactBench:
    """A `planning.candidates.Bench`; the error of a product is the fraction of the checked entries that are wrong."""

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

"""The interface of cost models: predicted seconds from a machine's measured rates. One implementation per device."""

from __future__ import annotations

from typing import Any, Protocol

Numbers = Any
"""A number, or an array of numbers; every argument of a cost model broadcasts."""


class CostModel(Protocol):
    """Seconds of the parts of a run. NaN if the profile has no rate."""

    def knows(self, dtype: str) -> bool:
        """Return whether the profile has rates of products of this dtype and of sums."""

    def gemm(self, dtype: str, m: Numbers, k: Numbers, n: Numbers, count: Numbers = 1, mode: str = "whole") -> Numbers:
        """Seconds of `count` products m x k x n by the vendor's library, in a mode that the profile names."""

    def combine(self, bytes: Numbers, flops: Numbers = 0) -> Numbers:
        """Seconds of linear combinations of blocks by a generated kernel."""

    def overhead(self, calls: Numbers, levels: Numbers = 0) -> Numbers:
        """Seconds of the host for so many library calls and levels."""

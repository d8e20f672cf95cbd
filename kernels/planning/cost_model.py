"""The interface of cost models: predicted seconds from a machine's measured rates. One implementation a device."""

from __future__ import annotations

from typing import Any, Protocol

Numbers = Any
"""A number, or an array of numbers; every argument of a cost model broadcasts."""


class CostModel(Protocol):
    """Seconds of the parts of a run. NaN where the profile has no rate."""

    def knows(self, dtype: str) -> bool:
        """Whether the profile has rates of products of this dtype and of sums."""

    def gemm(self, dtype: str, m: Numbers, k: Numbers, n: Numbers, count: Numbers = 1, mode: str = "whole") -> Numbers:
        """`count` products m x k x n of the vendor's library, executed in a mode that the profile names."""

    def combine(self, bytes: Numbers, flops: Numbers = 0) -> Numbers:
        """Linear combinations of blocks by a generated kernel."""

    def overlap(self, combine: Numbers, mode: str) -> Numbers:
        """What inner combinations cost beside `combine` when products run in this mode."""

    def overhead(self, calls: Numbers, levels: Numbers = 0) -> Numbers:
        """The host's work for so many calls of the library and levels."""

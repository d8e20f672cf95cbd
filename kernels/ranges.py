"""Ranges that cover a size."""

from __future__ import annotations

from collections.abc import Iterator


def ranges(size: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield `count` ranges of nearly equal length that cover 0 <= i < size, without the empty ones."""
    for i in range(count):
        start, stop = size * i // count, size * (i + 1) // count
        if start < stop:
            yield start, stop

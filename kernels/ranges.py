"""Ranges that cover a size."""

from __future__ import annotations

from collections.abc import Iterator


def ranges(size: int, count: int) -> Iterator[tuple[int, int]]:
    """`count` ranges of nearly one length that cover 0 <= i < size; empty ones are left out."""
    for i in range(count):
        start, stop = size * i // count, size * (i + 1) // count
        if start < stop:
            yield start, stop

"""Random states that depend on a seed and a walk's index only."""

from __future__ import annotations


def splitmix(seed: int, index: int) -> int:
    """A nonzero 64-bit state for walk `index` of a run, from splitmix64 of both numbers."""
    mask = (1 << 64) - 1
    state = (seed * 0x9E3779B97F4A7C15 + index * 0xD1B54A32D192ED03 + 0x2545F4914F6CDD1D) & mask
    for factor, shift in ((0xBF58476D1CE4E5B9, 30), (0x94D049BB133111EB, 27)):
        state = ((state ^ (state >> shift)) * factor) & mask
    return (state ^ (state >> 31)) or 1

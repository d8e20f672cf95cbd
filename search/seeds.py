"""Random states that depend only on a seed and a walk's index."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_MASK = (1 << 64) - 1
_SEED, _INDEX, _OFFSET = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x2545F4914F6CDD1D
_ROUNDS = ((0xBF58476D1CE4E5B9, 30), (0x94D049BB133111EB, 27))


def splitmix(seed: int, index: int) -> int:
    """Return a nonzero 64-bit state for walk `index` of a run, from splitmix64 of both numbers."""
    return int(splitmix_range(seed, index, 1)[0])


def splitmix_range(seed: int, first: int, count: int) -> npt.NDArray[np.uint64]:
    """Return (count,) uint64: `splitmix` of the indices from `first` on."""
    start = np.uint64((seed * _SEED + first * _INDEX + _OFFSET) & _MASK)
    state = start + np.arange(count, dtype=np.uint64) * np.uint64(_INDEX)
    for factor, shift in _ROUNDS:
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    state ^= state >> np.uint64(31)
    return np.where(state == 0, np.uint64(1), state)

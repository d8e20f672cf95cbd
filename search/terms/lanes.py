"""Lanes that work together: one on a processor, those of a warp on a GPU (`flipgraph.gpu.lanes`, in place of these)."""

from __future__ import annotations

import numpy as np

from .bits import compiled


@compiled(forceinline=True)
def width() -> int:
    """Return the number of lanes."""
    return 1


@compiled(forceinline=True)
def lane() -> int:
    """Return the number of this lane."""
    return 0


@compiled(forceinline=True)
def votes(hit: bool) -> int:
    """Return in how many lanes `hit` is true; all lanes get the same."""
    return int(hit)


@compiled(forceinline=True)
def voter(hit: bool, k: int) -> int:
    """Return the k-th lane in which `hit` is true; there are more than k."""
    return 0


@compiled(forceinline=True)
def meet() -> None:
    """Wait until all lanes are here, and see what they wrote."""


@compiled(forceinline=True)
def share(bits: np.uint64) -> np.uint64:
    """Return the bits, of the first `width` or all, that are this lane's share."""
    return bits


@compiled(forceinline=True)
def xor_of_all(word: np.uint64) -> np.uint64:
    """Return the sum modulo 2 of the words of all lanes."""
    return word

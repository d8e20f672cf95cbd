"""Lanes that work on one walk together: one on a processor, those of a warp on a GPU (`gpu`, in place of these)."""

from __future__ import annotations

from ..terms.bits import compiled


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

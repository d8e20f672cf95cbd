"""The shipped profile of one NVIDIA H200, used for plans if no GPU is present or none was measured.

Its rates are this project's own measurements on one card at its 700 W: medians of steady runs on random numbers for
cubes, and for rectangles the seconds of 1919 plans for 160 products (21 November 2026) minus those of the
sums.
"""

from __future__ import annotations

from ..planning.profile import Profile, published

NAME = "nvidia-h200"


def h200() -> Profile:
    """Return the profile: torch 2.11, CUDA 13.0, one card."""
    return published()[NAME]

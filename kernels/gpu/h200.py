"""The rates of one NVIDIA H200: what plans for such a GPU rest on where none is at hand."""

from __future__ import annotations

from functools import lru_cache

from ..profile import GemmRate, Profile
from .model import MULTIPROCESSORS

NAME = "nvidia-h200"

_TERAFLOPS: dict[tuple[str, str], dict[int, float]] = {
    ("bfloat16", "whole"): {1024: 143, 2048: 709, 4096: 668, 8192: 680, 16384: 669, 32768: 674},
    ("bfloat16", "batched 7"): {1024: 531, 2048: 648, 4096: 674, 8192: 690},
    ("bfloat16", "batched 49"): {512: 447, 1024: 582, 2048: 640, 4096: 645},
    ("bfloat16", "stack 7"): {2048: 636, 4096: 655, 8192: 690},
    ("bfloat16", "stack 49"): {1024: 521, 2048: 645, 4096: 668},
    ("float16", "whole"): {1024: 139, 2048: 654, 4096: 644, 8192: 642, 16384: 627},
    ("float16", "batched 7"): {1024: 520, 2048: 624, 4096: 643, 8192: 680},
    ("float16", "batched 49"): {512: 435, 1024: 570, 2048: 595, 4096: 635},
    ("float16", "stack 7"): {2048: 622, 4096: 628, 8192: 664},
    ("float16", "stack 49"): {1024: 508, 2048: 623, 4096: 650},
    ("tf32", "whole"): {1024: 122, 2048: 311, 4096: 339, 8192: 348, 16384: 352},
    ("tf32", "batched 7"): {1024: 224, 2048: 313, 4096: 283, 8192: 302},
    ("tf32", "batched 49"): {512: 222, 1024: 291, 2048: 297, 4096: 302},
    ("tf32", "loop"): {1024: 120, 2048: 324, 4096: 344},
    ("float32", "whole"): {1024: 37.7, 2048: 50, 4096: 51.4, 8192: 51.2, 16384: 53},
    ("float32", "batched 7"): {512: 38, 1024: 43.5, 2048: 51, 4096: 51.7, 8192: 52.3},
    ("float32", "batched 49"): {512: 49.1, 1024: 51.2, 2048: 52, 4096: 52.8},
    ("float32", "batched 343"): {256: 36.6, 512: 49.5, 1024: 51.2},
    ("float64", "whole"): {1024: 51.5, 2048: 51.3, 4096: 51.8, 8192: 50, 16384: 52},
    ("float64", "batched 7"): {512: 37, 1024: 48, 2048: 48.6, 4096: 50.4},
    ("float64", "batched 49"): {512: 46.6, 1024: 50.7, 2048: 52.9},
    ("float64", "batched 343"): {256: 41.4, 512: 44.7, 1024: 47.3, 2048: 48.7},
}
"""By dtype and mode, of cubes by their size: medians of steady runs on random numbers, at the card's 700 W. Those of
343 products are what whole runs leave for them when the sums are taken off."""


@lru_cache(maxsize=1)
def h200() -> Profile:
    """The profile: torch 2.11, CUDA 13.0, one card."""
    rates = tuple(
        GemmRate(dtype, size, size, size, 1e12 * rate, mode, "cublas")
        for (dtype, mode), row in _TERAFLOPS.items()
        for size, rate in row.items()
    )
    return Profile(
        id=NAME,
        hardware="NVIDIA H200",
        versions=(("torch", "2.11.0"), ("cuda", "13.0"), (MULTIPROCESSORS, "132")),
        gemm=rates,
        combine_rate=4.0e12,
        bandwidth=4.28e12,
        caches=(50 << 20,),
        call_overhead=5e-6,
        source="published",
        notes="This project's own measurements on one card; lcma doctor --profile --device cuda measures another.",
    )

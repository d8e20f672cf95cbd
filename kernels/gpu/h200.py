"""The rates of one NVIDIA H200: what plans for such a GPU rest on where none is at hand."""

from __future__ import annotations

from functools import lru_cache

from ..profile import GemmRate, Profile
from .model import MULTIPROCESSORS

NAME = "nvidia-h200"

_TERAFLOPS: dict[tuple[str, str], dict[int, float]] = {
    ("bfloat16", "whole"): {2048: 629, 4096: 748, 8192: 690, 16384: 709, 32768: 708},
    ("bfloat16", "batched 7"): {1024: 472, 2048: 704, 4096: 704, 8192: 712},
    ("bfloat16", "batched 49"): {1024: 594, 2048: 751, 4096: 663},
    ("bfloat16", "stack 7"): {8192: 725},
    ("bfloat16", "stack 49"): {2048: 741, 4096: 704},
    ("float16", "whole"): {4096: 724, 8192: 679, 16384: 673},
    ("float16", "batched 49"): {4096: 651},
    ("float16", "stack 49"): {4096: 691},
    ("tf32", "whole"): {2048: 330, 4096: 400, 8192: 364, 16384: 358},
    ("tf32", "batched 7"): {1024: 197, 2048: 337, 4096: 314, 8192: 263},
    ("tf32", "batched 49"): {2048: 330, 4096: 309},
    ("tf32", "loop"): {2048: 317, 4096: 345},
    ("float32", "whole"): {1024: 35, 2048: 50, 4096: 51.3, 8192: 51.2, 16384: 53},
    ("float32", "batched 7"): {1024: 43, 2048: 51, 4096: 52},
    ("float32", "batched 49"): {1024: 51, 2048: 52},
    ("float32", "batched 343"): {1024: 52},
    ("float64", "whole"): {1024: 52, 2048: 60, 4096: 61, 8192: 61.3, 16384: 54.2},
    ("float64", "batched 7"): {2048: 55, 4096: 55},
    ("float64", "batched 49"): {1024: 58, 2048: 58},
    ("float64", "batched 343"): {2048: 51},
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

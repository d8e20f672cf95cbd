"""Fixtures of walks: the counters of a plain twin, and the toolchain of kernels on GPUs."""

from importlib.util import find_spec

import pytest

COUNTERS = (
    *("steps", "flips", "misses", "since", "rank", "walk_best", "walk_steps", "trapped", "best_rank", "pluses"),
    *("restarts", "reductions", "gain_step"),
)
"""Names of a reference walk's counters, in the order of an arena's."""


@pytest.fixture
def counters_of():
    """counters_of(twin): the counters of a reference walk as an arena lists them."""
    return lambda twin: [getattr(twin, name) for name in COUNTERS]


@pytest.fixture
def gpu_toolchain():
    """The test is skipped where kernels of numba can't be compiled for GPUs."""
    for package in ("numba_cuda", "nvidia.cu13"):
        try:
            present = find_spec(package)
        except ModuleNotFoundError:
            present = None
        if present is None:
            pytest.skip(f"the toolchain is not here: {package} is missing; pip install 'numba-cuda[cu13]'")

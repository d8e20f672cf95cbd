"""Products in e4m3, without a GPU: interpreted, compiled for sm_90, and planned."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


@pytest.mark.slow
def test_the_interpreted_kernels_are_the_reference(run_checks):
    pytest.importorskip("triton")
    run_checks("checks_fp8_interpreted.py", TRITON_INTERPRET="1")


@pytest.mark.slow
def test_the_kernels_fit_sm_90(run_checks, tmp_path):
    pytest.importorskip("triton")
    run_checks("checks_fp8_compiled.py", TRITON_CACHE_DIR=str(tmp_path))

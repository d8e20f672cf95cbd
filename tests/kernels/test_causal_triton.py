"""The triangular Triton kernel without a GPU: interpreted on the CPU, and compiled for sm_90."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")


@pytest.mark.slow
def test_the_interpreted_kernel_is_the_product(run_checks):
    run_checks("checks_causal_interpreted.py", TRITON_INTERPRET="1")


@pytest.mark.slow
def test_the_kernel_fits_the_registers_of_sm_90(run_checks, tmp_path):
    run_checks("checks_causal_compiled.py", TRITON_CACHE_DIR=str(tmp_path))

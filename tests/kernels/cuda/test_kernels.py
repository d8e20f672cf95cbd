"""The generated Triton kernels without a GPU: interpreted on the CPU, and compiled for sm_90, sm_80 and sm_89."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")


@pytest.mark.slow
def test_interpreted_kernels_are_the_naive_maps(run_checks):
    run_checks("checks_interpreted.py", TRITON_INTERPRET="1")


@pytest.mark.slow
def test_kernels_fit_the_registers_of_sm_90(run_checks, tmp_path):
    run_checks("checks_compiled.py", TRITON_CACHE_DIR=str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["80", "89"])
def test_kernels_are_compiled_for_older_gpus_or_refused(run_checks, tmp_path, arch):
    run_checks("checks_other_gpus.py", TRITON_CACHE_DIR=str(tmp_path), ARCH=arch)

"""Kernels compiled ahead, without a GPU."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")


@pytest.mark.slow
def test_kernels_are_compiled_ahead_for_sm_90(run_checks, tmp_path):
    run_checks("checks_precompile.py", TRITON_CACHE_DIR=str(tmp_path))

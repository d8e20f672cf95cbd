"""The triangular Triton kernel without a GPU: interpreted on the CPU, and compiled for sm_90."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")


def run_checks(name, **environment):
    """The checks of a file beside this one, in a process of their own: the variable is read when triton is imported."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        str(Path(__file__).with_name(name)),
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=280)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.slow
def test_the_interpreted_kernel_is_the_product():
    run_checks("checks_causal_interpreted.py", TRITON_INTERPRET="1")


@pytest.mark.slow
def test_the_kernel_fits_the_registers_of_sm_90(tmp_path):
    run_checks("checks_causal_compiled.py", TRITON_CACHE_DIR=str(tmp_path))

"""Damaged files: never a traceback, never a hang, always one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("cases", "seed"), [(8, 1), pytest.param(200, 2, marks=pytest.mark.slow)])
def test_damaged_files_are_refused_or_judged(cases, seed):
    """So many of each format; `make fuzz` tries 10,000."""
    # Every thread of OpenBLAS reserves memory that counts against the limit.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).with_name("fuzz_files.py")), str(cases), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-4000:] + done.stderr[-4000:]

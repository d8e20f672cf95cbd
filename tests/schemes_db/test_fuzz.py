"""Damaged files: never a traceback, never a hang, always one line. The work is done by two scripts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SCRIPTS = [TESTS / "schemes_db" / "fuzz_formats.py", TESTS / "verify" / "fuzz_verdicts.py"]


def fuzz(script, cases, seed):
    # Every thread of OpenBLAS reserves memory that counts against the limit.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(script), str(cases), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_10_damaged_files_a_format(script):
    fuzz(script, 10, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_100_other_damaged_files_a_format(script):
    fuzz(script, 100, seed=2)  # `make fuzz` tries 10,000

"""Checks that need an environment of their own run in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).parent


@pytest.fixture
def run_checks():
    """run_checks(file, marked, **environment): the checks of a file of this folder, in a process of their own."""

    def run(name: str, marked: str = "not slow", **environment: str) -> None:
        command = [
            sys.executable,
            "-m",
            "pytest",
            str(_HERE / name),
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "-m",
            marked,
        ]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=280)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]

    return run

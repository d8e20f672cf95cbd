"""Environment variables of OpenMP and OpenBLAS, which must be set before any library starts its threads."""

from __future__ import annotations

import os


def prepare() -> None:
    """Tell threads to sleep when their work is done: spinning, those of one library steal the cores from another.

    What the user has set stays.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # OpenBLAS's threads spin for 2^26 cycles by default, some 26 ms: longer than most of our stages take.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

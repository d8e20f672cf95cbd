"""What must be said to OpenMP before any library starts its threads."""

from __future__ import annotations

import os


def prepare() -> None:
    """Tell OpenMP threads to sleep when their work is done: spinning, they steal the cores from the BLAS.

    What the user has set stays.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

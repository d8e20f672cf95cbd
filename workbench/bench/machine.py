"""The machine that a row was measured on."""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ...kernels.cpu.hardware import hardware

BUSY_SHARE = 0.03
"""A row is marked when other processes used more than this share of the processors."""

_LIBRARIES = ("numpy", "numba", "scipy", "torch", "triton", "numba-cuda", "ortools")


@lru_cache(maxsize=1)
def machine() -> dict[str, Any]:
    """Processor, cores, system and versions; the accelerator where one is visible without importing torch."""
    versions = {library: version for library in _LIBRARIES if (version := version_of(library)) is not None}
    return {
        "processor": hardware(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "accelerator": _accelerator(),
        "versions": {"python": platform.python_version(), **versions},
        "environment": {
            name: os.environ[name]
            for name in ("OPENBLAS_CORETYPE", "OMP_NUM_THREADS", "OMP_WAIT_POLICY")
            if name in os.environ
        },
    }


def version_of(library: str) -> str | None:
    """The version of an installed library."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def cores() -> int | None:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _accelerator() -> str | None:
    try:
        folders = sorted(Path("/proc/driver/nvidia/gpus").iterdir())
        names = [
            line.split(":", 1)[1].strip()
            for folder in folders
            for line in (folder / "information").read_text().splitlines()
            if line.startswith("Model")
        ]
    except OSError:
        return None
    return ", ".join(names) or None

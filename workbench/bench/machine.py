"""The machine that a row was measured on, and a hash of the code that it timed: a row counts while both stay."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ...kernels.cpu.machine import hardware

BUSY_SHARE = 0.03
"""A row is marked when other processes used more than this share of the processors."""

_LIBRARIES = ("numpy", "numba", "scipy", "torch", "triton", "numba-cuda", "ortools")
_VARIABLES = ("OPENBLAS_CORETYPE", "OMP_NUM_THREADS", "OMP_WAIT_POLICY")


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
        "environment": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
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
        texts = [path.read_text() for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))]
    except OSError:
        return None
    return ", ".join(name for text in texts for name in re.findall(r"^Model\S*\s+(.*)", text, re.M)) or None


ROOT = Path(__file__).resolve().parents[2]
"""The package's root folder."""


KINDS = (".py", ".csv", ".json", ".toml", ".c", ".cpp", ".h")
"""Suffixes of code files: sources, and the tables and data that they read."""


def code_hash(sources: Sequence[str]) -> str:
    """The sha256 (16 hex digits) over names and contents of all sources and tables in these files and folders."""
    digest = hashlib.sha256()
    for source in sorted(sources):
        place = ROOT / source
        files = sorted(file for file in place.rglob("*") if file.suffix in KINDS) if place.is_dir() else [place]
        for file in files:
            digest.update(f"{file.relative_to(ROOT).as_posix()}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]

"""The machine that a row was measured on, and how much of it others used meanwhile."""

from __future__ import annotations

import os
import platform
import time
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

BUSY_SHARE = 0.03
"""A row is marked when other processes used more than this share of the processors."""

_LIBRARIES = ("numpy", "numba", "scipy", "torch", "triton", "numba-cuda", "ortools")


@lru_cache(maxsize=1)
def machine() -> dict[str, Any]:
    """Processor, cores, system and versions; the accelerator where one is visible without importing torch."""
    versions = {"python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "accelerator": _accelerator(),
        "versions": versions,
        "environment": {
            name: os.environ[name]
            for name in ("OPENBLAS_CORETYPE", "OMP_NUM_THREADS", "OMP_WAIT_POLICY")
            if name in os.environ
        },
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


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


class Watch:
    """Monitor of the share of the CPUs that other processes use."""

    def __init__(self) -> None:
        self._start = _busy_seconds(), time.perf_counter()

    def share(self) -> float | None:
        """The share of all processors, 0 to 1, that went to others; None where the system does not tell."""
        (busy, began), (now, ended) = self._start, (_busy_seconds(), time.perf_counter())
        if busy is None or now is None:
            return None
        elapsed = (ended - began) * (os.cpu_count() or 1)
        # Both clocks tick in hundredths of a second: below a second they say nothing.
        return max(0.0, now - busy) / elapsed if elapsed >= 1 else 0.0


def _busy_seconds() -> float | None:
    """Seconds that all processors worked for processes other than this one and its children."""
    try:
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    user, nice, system, _idle, _iowait, irq, softirq, _steal = fields
    own = os.times()
    mine = own.user + own.system + own.children_user + own.children_system
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK") - mine

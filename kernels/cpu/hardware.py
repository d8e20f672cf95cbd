"""This machine's processor: its name, and what its profile is known by."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from ..planning.profile import Profile, unmeasured
from ..planning.profiles import stored_profile
from .threads import thread_count

_LIBRARIES = ("numpy", "numba", "torch")


@lru_cache(maxsize=1)
def hardware() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown"


@lru_cache(maxsize=1)
def versions() -> tuple[tuple[str, str], ...]:
    """What the rates depend on beside the processor: libraries, and settings that choose their kernels."""
    found = []
    for library in _LIBRARIES:
        try:
            found.append((library, metadata.version(library)))
        except metadata.PackageNotFoundError:
            continue
    for name in ("OPENBLAS_CORETYPE", "MKL_ENABLE_INSTRUCTIONS"):
        if name in os.environ:
            found.append((name, os.environ[name]))
    return tuple(found)


@lru_cache(maxsize=16)
def machine_id(threads: int) -> str:
    """The name of this machine's profile with so many threads."""
    text = repr((hardware(), threads, versions()))
    return f"cpu-{threads}t-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def machine_profile() -> Profile:
    """The stored profile of this machine with the present number of threads, else the unmeasured one."""
    return stored_profile(machine_id(thread_count())) or unmeasured()

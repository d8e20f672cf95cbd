"""This machine's processor: its name, and the key of its profile."""

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
    """Return the processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown"


@lru_cache(maxsize=1)
def versions() -> tuple[tuple[str, str], ...]:
    """Return the properties besides the processor that the rates depend on: library versions and kernel settings."""
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
    """Return the name of this machine's profile with so many threads."""
    text = repr((hardware(), threads, versions()))
    return f"cpu-{threads}t-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def machine_profile() -> Profile:
    """Return the stored profile of this machine with the current number of threads, else the unmeasured one."""
    return stored_profile(machine_id(thread_count())) or unmeasured()

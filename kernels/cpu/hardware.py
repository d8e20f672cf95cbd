"""This machine's processor: its name, and the key of its profile."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import lru_cache
from importlib import metadata
from pathlib import Path

_LIBRARIES = ("numpy", "numba", "torch")


@lru_cache(maxsize=1)
def hardware() -> str:
    """Return the processor's name."""
    names = (line.split(":", 1)[1].strip() for line in described() if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine() or "unknown"


@lru_cache(maxsize=1)
def described() -> tuple[str, ...]:
    """Return the system's description of the first processor."""
    try:
        return tuple(Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0].splitlines())
    except OSError:
        return ()


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


@lru_cache(maxsize=1)
def caches() -> tuple[int, ...]:
    """Return the sizes in bytes of the first processor's data caches, nearest first."""
    sizes = []
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind, size = (folder / "type").read_text().strip(), (folder / "size").read_text().strip()
        except OSError:
            continue
        if kind != "Instruction" and size.endswith("K"):
            sizes.append(int(size[:-1]) << 10)
    return tuple(sizes)

"""The memory that a plan may use."""

from __future__ import annotations

import math
from pathlib import Path


def free_bytes() -> float:
    """Return the bytes that this process can allocate without swapping or exceeding its limit; infinity if unknown."""
    return min(_available(), _below_limit())


def _available() -> float:
    """Return the available memory that the system reports."""
    return _field("/proc/meminfo", "MemAvailable:")


def _below_limit() -> float:
    """Return the rest of the address space that RLIMIT_AS grants."""
    try:
        import resource
    except ImportError:  # not available on this system
        return math.inf
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return math.inf
    used = _field("/proc/self/status", "VmSize:")
    return math.inf if used == math.inf else max(0.0, soft - used)


def _field(path: str, name: str) -> float:
    """Return a field (in kilobytes) of a system file, in bytes; infinity if there is none."""
    try:
        for line in Path(path).read_text().splitlines():
            if line.startswith(name):
                return 1024.0 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return math.inf

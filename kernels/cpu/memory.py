"""The memory that a plan may use."""

from __future__ import annotations

import math


def free_bytes() -> float:
    """Return the bytes that this process can allocate without swapping or exceeding its limit; infinity if unknown."""
    return min(_available(), _below_limit())


def _available() -> float:
    """Return the available memory that the system reports."""
    return _field("/proc/meminfo", b"MemAvailable:")


def _below_limit() -> float:
    """Return the rest of the address space that RLIMIT_AS grants."""
    try:
        import resource
    except ImportError:  # not available on this system
        return math.inf
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return math.inf
    used = _field("/proc/self/status", b"VmSize:")
    return math.inf if used == math.inf else max(0.0, soft - used)


def _field(path: str, name: bytes) -> float:
    """Return a field (in kilobytes) of a system file, in bytes; infinity if there is none."""
    try:
        with open(path, "rb", buffering=0) as file:
            _, _, found = file.read().partition(name)
        return 1024.0 * int(found.split(None, 1)[0])
    except (OSError, ValueError, IndexError):
        return math.inf

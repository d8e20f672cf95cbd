"""How much memory a plan may count on."""

from __future__ import annotations

import math
from pathlib import Path


def free_bytes() -> float:
    """Bytes that this process can still take without swapping or meeting its limit; infinity where nobody tells."""
    return min(_available(), _below_limit())


def _available() -> float:
    """What the system could give, as it says itself."""
    return _field("/proc/meminfo", "MemAvailable:")


def _below_limit() -> float:
    """What is left of the address space that RLIMIT_AS grants."""
    try:
        import resource
    except ImportError:  # not on this system
        return math.inf
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return math.inf
    used = _field("/proc/self/status", "VmSize:")
    return math.inf if used == math.inf else max(0.0, soft - used)


def _field(path: str, name: str) -> float:
    """A field in kilobytes of a file of the system, in bytes; infinity where there is none."""
    try:
        for line in Path(path).read_text().splitlines():
            if line.startswith(name):
                return 1024.0 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return math.inf

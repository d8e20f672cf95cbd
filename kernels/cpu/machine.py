"""The CPU machine that plans are computed for, and the memory that they may use."""

from __future__ import annotations

import math

from ..planning.machine import Machine
from ..planning.profile import Profile
from ..planning.wisdom import stored_wisdom
from .blas_threads import spin_seconds
from .cost_model import CpuCostModel
from .estimate import profile_for
from .threads import blas_is_limited, thread_count
from .workspace import shared_pool


def cpu_machine(dtype: str = "float32", profile: Profile | None = None, threads: int | None = None) -> Machine:
    """Return this machine as a planning target for products of a dtype; a `profile` replaces the stored one."""
    threads = thread_count() if threads is None else threads
    profile = profile_for(dtype) if profile is None else profile
    spin = spin_seconds() if profile.source == "measured" else 0.0
    return Machine(
        "cpu",
        profile,
        CpuCostModel(profile, threads, spin),
        threads,
        blas_limited=blas_is_limited(),
        kept_bytes=shared_pool.keep,
        free_bytes=free_bytes,
        wisdom=stored_wisdom(profile.id),
    )


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

"""The CPU machine that plans are computed for."""

from __future__ import annotations

from ..planning.machine import Machine
from ..planning.profile import Profile
from ..planning.wisdom import stored_wisdom
from .blas_threads import spin_seconds
from .cost_model import CpuCostModel
from .estimate import profile_for
from .memory import free_bytes
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

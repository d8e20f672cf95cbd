"""The CPU machine that plans are computed for."""

from __future__ import annotations

from ..planning.machine import Machine
from ..planning.profile import Profile
from ..planning.wisdom import stored_wisdom
from ..request import Request
from .cost_model import CpuCostModel
from .estimate import profile_for
from .hardware import machine_profile
from .memory import free_bytes
from .threads import blas_is_limited, spin_seconds, thread_count
from .workspace import shared_pool


def cpu_machine(request: Request | None = None, profile: Profile | None = None, threads: int | None = None) -> Machine:
    """Return this machine as a planning target for a request; a `profile` replaces the stored one.

    Where nothing was measured for the request's dtype, a first estimate is measured now (about two seconds).
    """
    threads = thread_count() if threads is None else threads
    if profile is None:
        profile = machine_profile() if request is None else profile_for(request)
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

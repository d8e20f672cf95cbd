"""The profile used for planning: the stored one, or a first estimate measured on the spot."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from ..planning.profile import GemmRate, Profile
from ..planning.profiles import keep_profile
from ..request import Request
from .hardware import machine_profile
from .others import BUSY_SHARE, CpuLoadMonitor

ATTEMPTS, PATIENCE = 3, 5.0
"""A disturbed estimate is repeated so often before it is accepted, unless all have taken so many seconds."""

_ESTIMATES: dict[tuple[str, str], Profile] = {}


def profile_for(request: Request) -> Profile:
    """This machine's profile with rates of the request's dtype.

    Where nothing was measured yet (or the file is damaged) two seconds are spent on a first estimate,
    which is kept: `lcma doctor --profile` measures better. An estimate that other processes
    disturbed serves this process only.
    """
    known = machine_profile()
    if known.rates(request.dtype) is not None or request.dtype == "int8":  # which needs none
        return known
    if (known.id, request.dtype) not in _ESTIMATES:
        from .measure import measure

        found, disturbed = undisturbed(lambda: measure((request.dtype,), quick=True))
        if known.source == "measured":
            found = replace(known, gemm=known.gemm + found.gemm)
        if not disturbed:
            with contextlib.suppress(OSError):  # a home that cannot be written costs a measurement a process
                keep_profile(found)
        _ESTIMATES[known.id, request.dtype] = found
        _ESTIMATES[found.id, request.dtype] = found
    return _ESTIMATES[known.id, request.dtype]


def undisturbed(measured: Callable[[], Profile]) -> tuple[Profile, bool]:
    """The first of some measurements that nobody disturbs; else the cautious reading of all, and True."""
    found: list[Profile] = []
    shares: list[float] = []
    began = time.perf_counter()
    for _ in range(ATTEMPTS):
        if found and time.perf_counter() - began > PATIENCE:
            break
        monitor = CpuLoadMonitor()
        found.append(measured())
        shares.append(monitor.share())
        if shares[-1] <= BUSY_SHARE:
            return found[-1], False
    return cautious(found, min(shares)), True


def cautious(found: list[Profile], share: float) -> Profile:
    """One profile of several disturbed ones, that promises a scheme no more than is safe.

    What disturbs only takes time, so the best of every rate is the nearest to the truth. It hits a
    product by all threads harder than one by each: the library is credited with the better of both,
    and of all smaller products, or it would seem easy to beat. Of sums and memory the slowest samples count.
    """
    best: dict[tuple[str, int, int, int, str, str], GemmRate] = {}
    for row in (row for profile in found for row in profile.gemm):
        key = row.dtype, row.m, row.k, row.n, row.mode, row.backend
        best[key] = max(best.get(key, row), row, key=lambda one: one.rate)

    def held(row: GemmRate) -> float:
        size = row.m * row.k * row.n
        return max(
            other.rate for other in best.values() if other.dtype == row.dtype and other.m * other.k * other.n <= size
        )

    rates = tuple(replace(row, rate=held(row)) if row.mode == "whole" else row for row in best.values())
    notes = (
        f"a cautious estimate, not stored: other processes used {share:.0%} of the processors; "
        "run lcma doctor --profile when they are idle"
    )

    def slowest(values: Iterable[float | None]) -> float | None:
        return min((value for value in values if value is not None), default=None)

    return replace(
        found[0],
        gemm=rates,
        combine_rate=slowest(profile.combine_rate for profile in found),
        bandwidth=slowest(profile.bandwidth for profile in found),
        add_rate=slowest(profile.add_rate for profile in found),
        notes=notes,
    )

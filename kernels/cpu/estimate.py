"""The profile used for planning: the stored one, or a first estimate measured on demand."""

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
    """Return this machine's profile with rates of the request's dtype.

    Where nothing was measured yet (or the file is damaged) two seconds are spent on a first estimate,
    which is kept: `lcma doctor --profile` measures better. An estimate that other processes
    disturbed serves this process only.
    """
    known = machine_profile()
    if known.rates(request.dtype) is not None or request.dtype == "int8":  # int8 needs no rates
        return known
    if (known.id, request.dtype) not in _ESTIMATES:
        from .measure import measure

        found, disturbed = undisturbed(lambda: measure((request.dtype,), quick=True))
        if known.source == "measured":
            found = replace(known, gemm=known.gemm + found.gemm)
        if not disturbed:
            with contextlib.suppress(OSError):  # an unwritable home costs one measurement per process
                keep_profile(found)
        _ESTIMATES[known.id, request.dtype] = found
        _ESTIMATES[found.id, request.dtype] = found
    return _ESTIMATES[known.id, request.dtype]


def undisturbed(measured: Callable[[], Profile]) -> tuple[Profile, bool]:
    """Return the first undisturbed measurement and False; if there is none, `cautious` of all and True."""
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
    """Merge several disturbed profiles into one that does not overestimate the gain of a scheme.

    Disturbances only add time, so the best of every GEMM rate is the most accurate. They slow a product
    by all threads more than one product per thread: "whole" rates are raised to the best rate of either mode,
    at this and all smaller sizes, or the library would seem easy to beat. For sums and memory the slowest rate is used.
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

"""The machine of exact products: the profile with rates of products over GF(2), measured if none are stored."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from ..cpu.bench import BUSY_SHARE, CpuLoadMonitor, best_seconds
from ..cpu.cost_model import CpuCostModel
from ..cpu.machine import cpu_machine
from ..cpu.threads import parallel_tasks
from ..cpu.workspace import shared_pool
from ..planning.machine import Machine
from ..planning.profile import GemmRate, keep_profile
from ..request import BITS, Request
from .bits import BitMatrix
from .gf2 import BitLeaf, best_kernel

CUBES = (256, 512, 1024, 2048, 4096, 8192)
"""Sizes whose rates over GF(2) are measured, in a few hundredths of a second each, the last in two tenths."""


def exact_machine(request: Request, measure: bool = True) -> Machine:
    """Return this machine for an exact request; `measure` permits to measure missing rates for a second or two."""
    machine = cpu_machine("float64")
    if request.dtype != BITS or not measure or machine.profile.rates(BITS) is not None:
        return machine
    profile = replace(machine.profile, gemm=machine.profile.gemm + measured_rates(machine.threads))
    return replace(machine, profile=profile, costs=CpuCostModel(profile, machine.threads))


@lru_cache(maxsize=4)
def measured_rates(threads: int) -> tuple[GemmRate, ...]:
    """Return rates of products over GF(2), counted as 2 m k n; stored beside the machine's profile unless disturbed."""
    monitor = CpuLoadMonitor()
    found: list[GemmRate] = []
    kernel = best_kernel()
    for size in CUBES:
        for mode in ("whole", "tasks") if threads > 1 else ("whole",):
            rate = _rate(size, threads, kernel, mode)
            found.append(GemmRate(BITS, size, size, size, rate, mode, kernel))
    rows = tuple(found)
    profile = cpu_machine().profile
    if monitor.share() <= BUSY_SHARE and profile.source == "measured":
        with contextlib.suppress(OSError):  # an unwritable home costs one measurement per process
            keep_profile(replace(profile, gemm=tuple(r for r in profile.gemm if r.dtype != BITS) + rows))
    return rows


def _rate(size: int, threads: int, kernel: str, mode: str) -> float:
    """Return the operations per second of one product by all threads, or of one product per thread."""
    a, b = (BitMatrix.random(size, size, seed=seed).words for seed in (0, 1))
    core = BitLeaf((size, size, size), kernel)
    count = threads if mode == "tasks" else 1
    outs = [np.empty_like(a) for _ in range(count)]
    core.compile()
    with shared_pool.take(count * core.workspace(threads) + 64 * count) as arena:
        arenas = arena.split(count, core.workspace(threads))

        def one(i: int = 0, _: int = 0) -> None:
            core.run(a, b, outs[i], arenas[i].rest(), 1 if mode == "tasks" else threads)

        seconds = best_seconds(partial(parallel_tasks, one, count, threads) if mode == "tasks" else one)
    return 2.0 * count * size**3 / seconds

"""The CPU machine that plans are computed for: its processor, its profile, and the memory that they may use.

The profile is the stored one, or an estimate from what the system says of the processor. An estimate orders candidates;
it never puts one in the place of the vendor's product (`planner.NOTHING_TIMED`).
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from ..dtypes import dtype_of
from ..planning.machine import Machine
from ..planning.profile import ESTIMATED, GemmRate, Profile, stored_profile
from ..planning.wisdom import stored_wisdom
from .blas_threads import spin_seconds
from .cost_model import CpuCostModel
from .threads import blas_is_limited, thread_count
from .workspace import shared_pool

_LIBRARIES = ("numpy", "numba", "torch")


@lru_cache(maxsize=1)
def hardware() -> str:
    """Return the processor's name."""
    return _described().get("model name") or platform.processor() or platform.machine() or "unknown"


@lru_cache(maxsize=1)
def _described() -> dict[str, str]:
    """Return the system's description of the first processor: values by name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0].splitlines()
    except OSError:
        return {}
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


@lru_cache(maxsize=1)
def versions() -> tuple[tuple[str, str], ...]:
    """Return the properties besides the processor that the rates depend on: library versions and kernel settings."""
    found = []
    for library in _LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append((library, metadata.version(library)))
    settings = "OPENBLAS_CORETYPE", "MKL_ENABLE_INSTRUCTIONS"
    return (*found, *((name, os.environ[name]) for name in settings if name in os.environ))


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


FLOPS_PER_CYCLE = (("avx512f", 64), ("avx2", 32), ("asimd", 16))
"""Operations in float32 a cycle and core, by the widest vector instructions: two fused multiply-adds a cycle."""

FLOPS_PER_CYCLE_SCALAR = 8

HERTZ = 2.5e9
"""The clock where the system reports none."""

SIZES = (128, 256, 512, 1024, 2048, 4096)
"""Square sizes of the estimated rates."""

HALF_WHOLE, HALF_ALONE = 160, 48
"""Size at which a product reaches half of the best rate: per doubling of the threads, and on one thread."""

INTEGER_RATE = 1.5e9
"""Flops per second of numpy's own loops, which multiply integers on one thread."""

BYTES_PER_CORE, MOST_BYTES = 20e9, 120e9
"""Bandwidth in bytes per second, read and written, of one core, and of all together."""


def profile_for(dtype: str = "float32") -> Profile:
    """Return this machine's stored profile if it has rates of the dtype, else with estimated ones; takes milliseconds.

    `lcma doctor --profile` measures one.
    """
    threads = thread_count()
    known = stored_profile(machine_id(threads))
    if known is None:
        return estimated(threads)
    return known if known.rates(dtype) is not None else replace(known, gemm=known.gemm + _rates(threads, dtype))


@lru_cache(maxsize=8)
def estimated(threads: int) -> Profile:
    """Return the profile that the processor's instructions, clock and number of threads suggest."""
    dtypes = ("float32", "float64", "complex64", "complex128", "int32", "int64", "bfloat16")
    bandwidth = min(BYTES_PER_CORE * threads, MOST_BYTES)
    return Profile(
        machine_id(threads),
        f"{hardware()}, {threads} threads",
        versions(),
        tuple(rate for dtype in dtypes for rate in _rates(threads, dtype)),
        bandwidth,
        bandwidth,
        caches(),
        source=ESTIMATED,
        notes="estimated from the processor's description; lcma doctor --profile measures",
    )


def calibrated(profile: Profile, timed: Sequence[GemmRate]) -> Profile:
    """Return an estimated profile whose rates of a dtype are scaled to those of timed whole products, by library."""
    if profile.source != ESTIMATED or not timed:
        return profile
    rows = list(profile.gemm)
    for number, row in enumerate(timed):
        guess = profile.gemm_rate(row.dtype, row.m, row.k, row.n)
        if guess is None:
            continue
        alike = [replace(one, rate=one.rate * row.rate / guess) for one in profile.gemm if one.dtype == row.dtype]
        if number == 0:
            rows = [one for one in rows if one.dtype != row.dtype]
            rows += [replace(one, backend=row.backend) for one in alike]
        else:
            rows += [replace(one, backend=row.backend) for one in alike if one.mode == "whole"]
    return replace(profile, gemm=tuple(rows))


def _rates(threads: int, dtype: str) -> tuple[GemmRate, ...]:
    """Return rates of whole products and of one product a thread, which smaller sizes slow less."""
    kind = dtype_of(dtype)
    if kind.exact:
        return (GemmRate(dtype, 256, 256, 256, INTEGER_RATE), GemmRate(dtype, 256, 256, 256, INTEGER_RATE, "tasks"))
    features = (_described().get("flags") or _described().get("Features", "")).split()
    wide = next((flops for name, flops in FLOPS_PER_CYCLE if name in features), FLOPS_PER_CYCLE_SCALAR)
    best = threads * wide * _hertz() * 4 / kind.numpy.itemsize
    found = []
    for size in SIZES:
        whole, alone = HALF_WHOLE * max(1, threads).bit_length() / 2, HALF_ALONE
        found.append(GemmRate(dtype, size, size, size, best * size / (size + whole)))
        found.append(GemmRate(dtype, size, size, size, best * size / (size + alone), "tasks"))
    return tuple(found)


@lru_cache(maxsize=1)
def _hertz() -> float:
    """Return the highest clock that the system reports."""
    folder = Path("/sys/devices/system/cpu/cpu0/cpufreq")
    with contextlib.suppress(OSError, ValueError):
        return 1e3 * int((folder / "cpuinfo_max_freq").read_text())
    with contextlib.suppress(KeyError, ValueError):
        return 1e6 * float(_described()["cpu MHz"])
    return HERTZ


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

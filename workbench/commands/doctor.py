"""`lcma doctor`"""

from __future__ import annotations

import platform
import sys
import time
from dataclasses import replace

import click

from ...errors import LcmaError
from ...home import cache_folder, home, writable
from ...kernels.cpu.bench import BUSY_SHARE, CpuLoadMonitor
from ...kernels.cuda.machine import device_reason
from ...kernels.planning.profile import keep_profile
from ...schemes_db.catalog import Catalog
from ...schemes_db.shipped import shipped, shipped_names
from ...verify import check
from ...version import __version__
from ..bench.machine import cores, version_of
from ..cpu_profile import measure
from ..gpu_profile import measure as measure_gpu
from ..help import lcma_command
from ..options import Choice, option
from ..output import answer, print_table, wants_json

BASE = ("numpy", "numba", "sympy", "networkx", "ortools", "click", "rich", "threadpoolctl", "platformdirs")
PACKAGES = (*BASE, "torch", "triton", "numba-cuda")


@lcma_command
def command(
    *,
    measured: bool = option("--profile"),
    device: str | None = option(type=Choice(["cpu", "cuda"])),
) -> int:
    if measured:
        here = ("cpu",) if device_reason() else ("cpu", "cuda")
        return max(_measure(one) for one in ((device,) if device else here))
    proofs = {name: check(shipped(name).scheme).ok for name in shipped_names()}
    with Catalog.open() as catalog:
        path, entries = catalog.path, catalog.entries()
    packages = {name: version_of(name) for name in PACKAGES}
    facts = {
        "lcma": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": cores(),
        "packages": packages,
        "blas": _blas(),
        "home": str(home()),
        "cache": str(writable(cache_folder())),
        "catalogue": str(path) if path else "in memory: the home folder can't be written",
        "schemes": len(entries),
        "shipped schemes proven": f"{sum(proofs.values())} of {len(proofs)}",
    }
    versions = ", ".join(f"{key} {text or '-'}" for key, text in packages.items())
    answer(facts, "\n".join(f"{name + ':':<24}{value}" for name, value in {**facts, "packages": versions}.items()))
    return 0 if all(proofs.values()) else 1


def _measure(device: str) -> int:
    """Measure, keep, and show the profile."""
    began = time.perf_counter()
    if device == "cuda":
        profile = measure_gpu(say=_say)
    else:
        monitor = CpuLoadMonitor()
        profile = measure(say=_say)
        if (share := monitor.share()) > BUSY_SHARE:
            profile = replace(profile, notes=f"other processes used {share:.0%} of the processors meanwhile")
            _say(f"was disturbed: {profile.notes}; do it again when they are idle")

    try:
        path = keep_profile(profile)
    except OSError as error:
        raise LcmaError(f"the profile can't be kept: {error.strerror}; set LCMA_HOME to a folder of your own") from None
    if wants_json():
        click.echo(profile.to_json())
        return 0
    rows = [
        (row.dtype, f"{row.m}x{row.k}x{row.n}", row.mode, row.backend, f"{row.rate / 1e9:.1f}") for row in profile.gemm
    ]
    print_table(("dtype", "product", "mode", "library", "Gflop/s"), rows)
    for label, value in (
        ("sums", f"{(profile.combine_rate or 0) / 1e9:.1f} GB/s"),
        ("memory", f"{(profile.bandwidth or 0) / 1e9:.1f} GB/s"),
        ("caches", " ".join(f"{size >> 10}K" for size in profile.caches)),
        *[("a launch", f"{1e6 * seconds:.1f} us") for seconds in [profile.call_overhead] if seconds],
        ("profile", f"{path} ({time.perf_counter() - began:.1f} s)"),
    ):
        click.echo(f"{label + ':':<24}{value}")
    return 0


def _say(text: str) -> None:
    click.echo(f"measuring {text}", err=True)


def _blas() -> str:
    import threadpoolctl

    pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    return (
        "; ".join(
            f"{pool['internal_api']} {pool['version']}, {pool.get('architecture', '?')} kernels, "
            f"{pool['num_threads']} threads"
            for pool in pools
        )
        or "none"
    )

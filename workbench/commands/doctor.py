"""`lcma doctor`"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys

import click

from ...home import cache_folder, home, writable
from ...schemes_db.catalog import Catalog
from ...schemes_db.shipped import shipped, shipped_names
from ...verify import check
from ...version import __version__
from ..output import print_json

PACKAGES = (
    "numpy",
    "numba",
    "sympy",
    "networkx",
    "ortools",
    "click",
    "rich",
    "threadpoolctl",
    "platformdirs",
    "torch",
    "triton",
    "numba-cuda",
)


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True)
def command(as_json: bool) -> int:
    """Show what lcma finds on this machine, and prove the shipped schemes again."""
    proofs = {name: check(shipped(name).scheme).ok for name in shipped_names()}
    with Catalog.open() as catalog:
        path, entries = catalog.path, catalog.entries()
    facts: dict[str, object] = {
        "lcma": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "packages": {name: _version(name) for name in PACKAGES},
        "blas": _blas(),
        "home": str(home()),
        "cache": str(writable(cache_folder())),
        "catalogue": str(path) if path else "in memory: the home folder can't be written",
        "schemes": len(entries),
        "shipped schemes proven": f"{sum(proofs.values())} of {len(proofs)}",
    }
    if as_json:
        print_json(facts)
    else:
        for name, value in facts.items():
            if isinstance(value, dict):
                value = ", ".join(f"{key} {text or '-'}" for key, text in value.items())
            click.echo(f"{name + ':':<24}{value}")
    return 0 if all(proofs.values()) else 1


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


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

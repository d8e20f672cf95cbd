"""The share of sectors that the L2 of a GPU has, counted by Nsight Compute (`ncu`) in a process of its own."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

HIT_RATE, SECTORS = "lts__t_sector_hit_rate.pct", "lts__t_sectors.sum"
"""The counters of a kernel: the share of sectors that hit, in percent, and the number of sectors."""

TOOLKIT = "/usr/local/cuda/bin"
"""Where the toolkit puts ncu, for a PATH that lacks it."""

TIMEOUT = 300.0
"""Seconds that a process may take under ncu, which runs kernels one at a time: start-up is most of it."""

FORBIDDEN = "ERR_NVGPUCTRPERM"

MARK = "spin_kernel"
"""Part of the name of the kernel of torch.cuda._sleep, which separates the calls that are counted."""


def count(calls: Mapping[str, Callable[[], object]]) -> None:
    """Run every call once between marks while ncu counts; for the process that `hit_rates` starts."""
    import torch

    for call in calls.values():
        call()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    for call in calls.values():
        torch.cuda._sleep(1)
        call()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def hit_rates(program: str, names: Sequence[str], timeout: float = TIMEOUT) -> dict[str, float] | str:
    """Return the L2 hit rate, 0 to 1, of all kernels of each call; "not readable: ..." where nothing may be counted.

    `program`: Python code that calls `count` with calls of these names, in this order. Clocks are left as they are, and
    caches hold what the kernel before left in them.
    """
    ncu = shutil.which("ncu") or shutil.which("ncu", path=TOOLKIT)
    if ncu is None:
        return "not readable: there is no ncu (Nsight Compute) on PATH"
    command = [ncu, "--csv", "--print-units", "base", "--metrics", f"{HIT_RATE},{SECTORS}"]
    command += ["--clock-control", "none", "--cache-control", "none", "--profile-from-start", "off"]
    try:
        # A session of its own, so that what ncu started ends with it.
        process = subprocess.Popen(
            [*command, sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    except OSError as error:
        return f"not readable: {ncu} does not start: {error.strerror}"
    try:
        text, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        return f"not readable: ncu took more than {timeout:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if FORBIDDEN in text:
        return f"not readable: the driver reserves its counters for administrators ({FORBIDDEN})"
    if process.returncode:
        return f"not readable: ncu ended with {process.returncode}: {_reason(text)}"
    return rates_of(text, names)


def rates_of(text: str, names: Sequence[str]) -> dict[str, float] | str:
    """Return the hit rates of calls between marks from ncu's CSV; kernels weigh as their sectors do."""
    kernels: dict[str, dict[str, float]] = {}
    places: dict[str, int] = {}
    place = -1
    for row in csv.DictReader(line for line in text.splitlines() if line.startswith('"')):
        number, name, metric = (row.get(key) or "" for key in ("ID", "Kernel Name", "Metric Name"))
        if metric not in (HIT_RATE, SECTORS):
            continue
        if number not in kernels:
            place += MARK in name
            kernels[number], places[number] = {}, -1 if MARK in name else place
        try:
            kernels[number][metric] = float((row.get("Metric Value") or "").replace(",", ""))
        except ValueError:
            return f"not readable: ncu counted no {metric} of {name}"
    if place + 1 != len(names):
        return f"not readable: ncu counted {place + 1} of {len(names)} calls: {_reason(text)}"
    hits, sectors = [0.0] * len(names), [0.0] * len(names)
    for number, counters in kernels.items():
        if (call := places[number]) >= 0 and counters.keys() == {HIT_RATE, SECTORS}:
            hits[call] += counters[HIT_RATE] / 100 * counters[SECTORS]
            sectors[call] += counters[SECTORS]
    if not all(sectors):
        return f"not readable: ncu counted no kernel of {names[sectors.index(0.0)]}"
    return {name: hit / most for name, hit, most in zip(names, hits, sectors, strict=True)}


def _reason(text: str) -> str:
    """Return the last error of ncu's output, or its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("==ERROR==").strip() for line in lines if line.startswith("==ERROR==")]
    return (errors or lines or ["no output"])[-1]

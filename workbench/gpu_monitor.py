"""The clock and the power draw of a GPU while something runs on it."""

from __future__ import annotations

import atexit
import functools
import statistics
import subprocess
import threading
from dataclasses import dataclass

PERIOD_MS = 100
"""Seconds between queries of nvidia-smi."""


@dataclass(frozen=True)
class GpuState:
    """Medians over a time: clock of the multiprocessors in MHz and power in W; None where they are not readable."""

    clock_mhz: float | None
    power_w: float | None

    def __str__(self) -> str:
        clock = "not readable" if self.clock_mhz is None else f"{self.clock_mhz:.0f} MHz"
        power = "not readable" if self.power_w is None else f"{self.power_w:.0f} W"
        return f"SM clock {clock}, power {power}"


class _Sampler:
    """The lines of one `nvidia-smi` that runs as long as this process: to end one takes it seconds."""

    def __init__(self, identity: str) -> None:
        self.rows: list[str] = []
        query = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits"]
        try:
            self._process = subprocess.Popen(
                [*query, "-i", identity, "-lms", str(PERIOD_MS)],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except OSError:  # there is no nvidia-smi
            return
        threading.Thread(target=self._read, daemon=True).start()
        atexit.register(self._process.kill)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.rows.append(line)


@functools.cache
def _sampler(identity: str) -> _Sampler:
    return _Sampler(identity)


class GpuMonitor:
    """Samples the current GPU by `nvidia-smi` from entry to exit; `state` then holds the medians."""

    def __init__(self) -> None:
        self._rows: list[str] = []

    def __enter__(self) -> GpuMonitor:
        self._sampler = _sampler(gpu_identity())
        self._start = len(self._sampler.rows)
        return self

    def __exit__(self, *_: object) -> None:
        self._rows = self._sampler.rows[self._start :]

    @property
    def state(self) -> GpuState:
        return state_of(self._rows)


def state_of(rows: list[str]) -> GpuState:
    """The medians of lines "clock, power" of nvidia-smi; "[N/A]" and the like are left out."""
    clocks: list[float] = []
    powers: list[float] = []
    for row in rows:
        for text, column in zip(row.split(","), (clocks, powers), strict=False):
            try:
                column.append(float(text))
            except ValueError:
                continue
    return GpuState(*(statistics.median(column) if column else None for column in (clocks, powers)))


def gpu_identity() -> str:
    """Return the identifier of the current GPU for nvidia-smi and NVML; its number if torch does not tell."""
    import torch

    index = torch.cuda.current_device()
    found = getattr(torch.cuda.get_device_properties(index), "uuid", None)
    return str(index) if found is None else f"GPU-{found}"

"""Clock, power and energy of a GPU while something runs on it, by NVML, the library of its driver."""

from __future__ import annotations

import ctypes
import statistics
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from ..kernels.arrays import torch

LIBRARY = "libnvidia-ml.so.1"

SM_CLOCK = 1
"""NVML's number of the clock of the multiprocessors."""

PERIOD, SAMPLE = 0.1, 0.02
"""Seconds between two readings of clock and power; of the power where there is no counter of energy."""

WINDOW = 1.2
"""Seconds over which the energy of one call is averaged: counters move every 20 to 100 ms."""


@dataclass(frozen=True)
class GpuState:
    """Medians over a time: clock of the multiprocessors in MHz and power in W; None where they are not readable."""

    clock_mhz: float | None
    power_w: float | None

    def __str__(self) -> str:
        clock = "not readable" if self.clock_mhz is None else f"{self.clock_mhz:.0f} MHz"
        power = "not readable" if self.power_w is None else f"{self.power_w:.0f} W"
        return f"SM clock {clock}, power {power}"


class NvmlMeter:
    """Readings of one GPU; `library` is NVML, `identity` the UUID of the GPU, or its number."""

    def __init__(self, library: Any, identity: str) -> None:
        self._library, self._device = library, ctypes.c_void_p()
        by_uuid = identity.startswith("GPU-")
        find = "nvmlDeviceGetHandleByUUID" if by_uuid else "nvmlDeviceGetHandleByIndex_v2"
        name: Any = ctypes.c_char_p(identity.encode()) if by_uuid else ctypes.c_uint(int(identity))
        self._known = not library.nvmlInit_v2() and not getattr(library, find)(name, ctypes.byref(self._device))

    def _read(self, name: str, kind: Any, *which: int, parts: int = 1) -> float | None:
        value = kind()
        if not self._known or getattr(self._library, name)(self._device, *which, ctypes.byref(value)):
            return None
        return value.value / parts

    def clock(self) -> float | None:
        """MHz of the multiprocessors."""
        return self._read("nvmlDeviceGetClockInfo", ctypes.c_uint, SM_CLOCK)

    def power(self) -> float | None:
        """Watts."""
        return self._read("nvmlDeviceGetPowerUsage", ctypes.c_uint, parts=1000)

    def _energy(self) -> float | None:
        """Joules since the driver was loaded."""
        return self._read("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong, parts=1000)

    def joules(self, work: Callable[[], object]) -> float | None:
        """Joules by the counter of energy, or by the power where there is no counter."""
        before, began = self._energy(), time.perf_counter()
        with Sampler(SAMPLE, *((self.power,) if before is None else ())) as sampler:
            work()
        if before is not None:
            after = self._energy()
            return after - before if after is not None and after > before else None
        (powers,) = sampler.values
        return (time.perf_counter() - began) * sum(powers) / len(powers) if powers else None


class Sampler:
    """Takes readings every `period` seconds from entry to exit; `values` has those of each that could be taken."""

    def __init__(self, period: float, *readings: Callable[[], float | None]) -> None:
        self._period, self._readings = period, readings
        self.values: list[list[float]] = [[] for _ in readings]
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while True:
            for read, values in zip(self._readings, self.values, strict=True):
                if (value := read()) is not None:
                    values.append(value)
            if self._done.wait(self._period):
                return

    def __enter__(self) -> Self:
        if self._readings:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._readings:
            self._thread.join()


class GpuMonitor(Sampler):
    """Samples the current GPU from entry to exit; `state` then holds the medians."""

    def __init__(self) -> None:
        meter = gpu_meter()
        super().__init__(PERIOD, *(() if meter is None else (meter.clock, meter.power)))

    @property
    def state(self) -> GpuState:
        return GpuState(*(statistics.median(one) if one else None for one in self.values or ([], [])))


@lru_cache(maxsize=1)
def gpu_meter() -> NvmlMeter | None:
    """The meter of the current GPU; None where the driver's library is not here."""
    index = torch.cuda.current_device()
    found = getattr(torch.cuda.get_device_properties(index), "uuid", None)
    try:
        return NvmlMeter(ctypes.CDLL(LIBRARY), str(index) if found is None else f"GPU-{found}")
    except (OSError, AttributeError):
        return None


def energy_of(
    calls: Mapping[str, Callable[[], object]],
    meter: NvmlMeter | None,
    seconds: Mapping[str, float],
    wait: Callable[[], object],
    window: float = WINDOW,
) -> dict[str, float | None]:
    """Joules of one call of each, over windows in turn; None where they are not readable.

    `seconds` are those of one call, `wait` returns when all that was started is done. Half a window before each that
    does not count brings the card to the power at which it runs such calls.
    """
    found: dict[str, float | None] = dict.fromkeys(calls)
    if meter is None:
        return found
    for name, call in calls.items():
        repeats = max(1, round(window / max(seconds[name], 1e-7)))

        def work(call: Callable[[], object] = call, count: int = repeats) -> None:
            for _ in range(count):
                call()
            wait()

        work(count=-(-repeats // 2))
        joules = meter.joules(work)
        found[name] = None if joules is None else joules / repeats
    return found

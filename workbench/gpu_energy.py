"""The energy that calls take on a GPU, by NVML, the library of its driver."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Protocol

from .gpu_monitor import gpu_identity

LIBRARY = "libnvidia-ml.so.1"

WINDOW = 1.2
"""Seconds over which the energy of one call is averaged: counters move every 20 to 100 ms."""

SAMPLE = 0.02
"""Seconds between two readings of the power, where there is no counter of energy."""


class Meter(Protocol):
    """Measures the energy of a stretch of work, in joules; None where it can't be read."""

    def joules(self, work: Callable[[], object]) -> float | None: ...


class NvmlMeter:
    """Joules by the driver's counter of one GPU, or by its power where it has no counter.

    `library` is NVML, `identity` the UUID of the GPU, or its number.
    """

    def __init__(self, library: Any, identity: str) -> None:
        self._library, self._device = library, ctypes.c_void_p()
        by_uuid = identity.startswith("GPU-")
        find = "nvmlDeviceGetHandleByUUID" if by_uuid else "nvmlDeviceGetHandleByIndex_v2"
        name: Any = ctypes.c_char_p(identity.encode()) if by_uuid else ctypes.c_uint(int(identity))
        self._known = not library.nvmlInit_v2() and not getattr(library, find)(name, ctypes.byref(self._device))

    def _read(self, name: str, kind: Any) -> float | None:
        """Thousandths of a joule or a watt."""
        value = kind()
        if not self._known or getattr(self._library, name)(self._device, ctypes.byref(value)):
            return None
        return float(value.value) / 1e3

    def _energy(self) -> float | None:
        return self._read("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong)

    def joules(self, work: Callable[[], object]) -> float | None:
        """See `Meter`."""
        before = self._energy()
        if before is not None:
            work()
            after = self._energy()
            return after - before if after is not None and after > before else None
        return self._by_power(work)

    def _by_power(self, work: Callable[[], object]) -> float | None:
        from concurrent.futures import ThreadPoolExecutor

        began, powers = time.perf_counter(), []
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(work)
            while not done.done():
                power = self._read("nvmlDeviceGetPowerUsage", ctypes.c_uint)
                if power is None:
                    done.result()
                    return None
                powers.append(power)
                time.sleep(SAMPLE)
            done.result()
        return (time.perf_counter() - began) * sum(powers) / len(powers) if powers else None


@lru_cache(maxsize=1)
def gpu_meter() -> NvmlMeter | None:
    """The meter of the current GPU; None where the driver's library is not here."""
    try:
        return NvmlMeter(ctypes.CDLL(LIBRARY), gpu_identity())
    except (OSError, AttributeError):
        return None


def energy_of(
    calls: Mapping[str, Callable[[], object]],
    meter: Meter | None,
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

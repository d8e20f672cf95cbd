"""Detection of other processes that use the processors during a measurement."""

from __future__ import annotations

import os
import time
from pathlib import Path

BUSY_SHARE = 0.05
"""A measurement counts as disturbed if other processes used more than this share of the processors."""


class CpuLoadMonitor:
    """The load that other processes put on the processors since this was created."""

    def __init__(self) -> None:
        self._busy, self._began = _busy_seconds(), time.perf_counter()

    def share(self) -> float:
        """Return the share of all processors, 0 to 1, that other processes used; 0 if the system does not report it."""
        now, elapsed = _busy_seconds(), time.perf_counter() - self._began
        if self._busy is None or now is None or not elapsed:
            return 0.0
        # Both clocks tick in hundredths of a second: two ticks of every processor are within the error.
        processors = os.cpu_count() or 1
        used = now - self._busy - 2 * processors / os.sysconf("SC_CLK_TCK")
        return max(0.0, used / (elapsed * processors))


def _busy_seconds() -> float | None:
    """Return the processor seconds of processes other than this one and its children."""
    try:
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    own = os.times()
    mine = own.user + own.system + own.children_user + own.children_system
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") - mine

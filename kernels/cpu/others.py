"""Whether other processes use the processors while something is measured."""

from __future__ import annotations

import os
import time
from pathlib import Path

BUSY_SHARE = 0.05
"""A measurement counts as disturbed when others used more than this share of the processors."""


class CpuLoadMonitor:
    """The load of other processes on the processors since this was created."""

    def __init__(self) -> None:
        self._busy, self._began = _busy_seconds(), time.perf_counter()

    def share(self) -> float:
        """The share of all processors, 0 to 1, that went to others; 0 where the system does not tell."""
        now, elapsed = _busy_seconds(), time.perf_counter() - self._began
        if self._busy is None or now is None or not elapsed:
            return 0.0
        # Both clocks tick in hundredths of a second: two ticks of every processor say nothing.
        processors = os.cpu_count() or 1
        used = now - self._busy - 2 * processors / os.sysconf("SC_CLK_TCK")
        return max(0.0, used / (elapsed * processors))


def _busy_seconds() -> float | None:
    """Processor seconds of processes other than this one and its children."""
    try:
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    own = os.times()
    mine = own.user + own.system + own.children_user + own.children_system
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") - mine

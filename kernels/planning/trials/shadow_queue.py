"""The queue of request classes that were met where nothing may be tried, and the time that shadow calls may take.

In CUDA graphs and gradients products run by what is known. Their classes wait here until shadow calls, of scratch
operands, decide them. No clock is read here.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

MOST_MET = 256
"""Classes that are remembered, decided ones included; beyond them the least recently met ones are dropped."""

LEAST_MET = 2
"""Calls of a class before it is decided: what is multiplied once has nothing to gain."""

IDLE_SECONDS, IDLE_PART = 0.5, 0.1
"""The process is idle if for so many seconds no product was looked up, and its threads used at most this part of one
processor."""

SHADOW_PART, SHADOW_SECONDS, SITTING = 0.02, 5.0, 2.0
"""Bound of the seconds of all shadow calls: a part of the seconds of the process, and a constant.

Calls start if SITTING seconds are left: drawing operands may take as long as multiplying them.
"""


class ShadowQueue:
    """Classes by key with the number of calls that met them; thread-safe. The class met last is decided first."""

    def __init__(self) -> None:
        self._met: OrderedDict[Hashable, int | None] = OrderedDict()
        self._lock = threading.Lock()

    def meet(self, key: Hashable, calls: int = 1) -> bool:
        """Count calls of a class; return whether it waits to be decided."""
        with self._lock:
            met = self._met.pop(key, 0)
            self._met[key] = met = None if met is None else met + calls
            while len(self._met) > MOST_MET:
                self._met.popitem(last=False)
        return met is not None and met >= LEAST_MET

    def waiting(self) -> list[Hashable]:
        """Return the classes that are to be decided, the latest first."""
        with self._lock:
            return [key for key, met in reversed(self._met.items()) if met is not None and met >= LEAST_MET]

    def settle(self, key: Hashable) -> None:
        """Record that a class is decided: it does not wait again."""
        with self._lock:
            if key in self._met:
                self._met[key] = None

    def forget(self, key: Hashable) -> None:
        """Drop a class that could not be decided; it waits again after as many calls."""
        with self._lock:
            self._met.pop(key, None)

    def known(self) -> list[Hashable]:
        """Return all classes, decided ones included."""
        with self._lock:
            return list(self._met)


def may_start(spent: float, elapsed: float) -> bool:
    """Return whether shadow calls may start that have taken `spent` of the process's `elapsed` seconds."""
    return may_go_on(spent + SITTING, elapsed)


def may_go_on(spent: float, elapsed: float) -> bool:
    """Return whether a further shadow call may be made."""
    return spent <= SHADOW_PART * elapsed + SHADOW_SECONDS


def is_idle(called: bool, processor: float, elapsed: float) -> bool:
    """Return whether a process was idle in `elapsed` seconds, of which it used a processor for `processor` seconds."""
    return not called and elapsed >= IDLE_SECONDS and processor <= IDLE_PART * elapsed

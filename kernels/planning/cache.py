"""The one cache of plans and executors: bounded, and emptied when what plans rest on has changed."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Made = TypeVar("Made")

MOST_ENTRIES = 1024

CHECK_SECONDS = 1.0
"""Interval of checking files for changes by other processes: a check costs more than a lookup."""


class PlanCache:
    """Least recently used entries by key; thread-safe.

    `watch` adds a stamp: a function whose value changes when plans rest on something else (a file that
    another process wrote, say). A changed stamp empties the cache at the next lookup that checks.
    """

    def __init__(self, most: int = MOST_ENTRIES) -> None:
        self.most = most
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._stamps: list[Callable[[], object]] = []
        self._seen: list[object] = []
        self._checked = 0.0

    def __len__(self) -> int:
        return len(self._entries)

    def watch(self, stamp: Callable[[], object]) -> None:
        """Empty the cache whenever the value of `stamp()` changes."""
        with self._lock:
            self._stamps.append(stamp)
            self._seen = []

    def get(self, key: Hashable) -> Any:
        """The entry of a key, or None."""
        now = time.monotonic()
        if now - self._checked > CHECK_SECONDS:
            self._check(now)
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, key: Hashable, value: Made) -> Made:
        """Keep an entry; the least recently used one beyond the bound is dropped."""
        with self._lock:
            self._entries[key] = value
            while len(self._entries) > self.most:
                self._entries.popitem(last=False)
        return value

    def clear(self) -> None:
        """Plan everything anew: a profile, wisdom, a strategy or the catalogue has changed."""
        with self._lock:
            self._entries.clear()

    def _check(self, now: float) -> None:
        found = [stamp() for stamp in self._stamps]
        with self._lock:
            self._checked = now
            if self._seen and found != self._seen:
                self._entries.clear()
            self._seen = found


plan_cache = PlanCache()
"""The cache of the process."""

"""The one cache of plans and executors: bounded, and cleared when the inputs of planning change."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Made = TypeVar("Made")

MOST_ENTRIES = 1024

CHECK_SECONDS = 1.0
"""Interval of checking files for changes by other processes: a check takes longer than a lookup."""


class PlanCache:
    """Least recently used entries by key; thread-safe.

    `watch` adds a stamp: a function whose value changes when an input of planning does (for example a file
    written by another process). A changed stamp clears the cache at the next lookup that checks.
    """

    def __init__(self, most: int = MOST_ENTRIES) -> None:
        self.most = most
        self._kept_in_order = most // 2  # below it nothing is dropped soon, and a lookup costs half
        self.entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._stamps: list[Callable[[], object]] = []
        self._seen: list[object] = []
        self._checked = 0.0
        self.used = 0.0
        """The time.monotonic() of the latest lookup."""
        self.generation = 0
        """Counts how often all entries were dropped."""

    def reset(self) -> None:
        """Drop all plans in a forked child: a thread of the parent may have held the lock."""
        self._lock = threading.Lock()
        self.entries = OrderedDict()
        self.generation += 1

    def __len__(self) -> int:
        return len(self.entries)

    def watch(self, stamp: Callable[[], object]) -> None:
        """Clear the cache whenever the value of `stamp()` changes."""
        with self._lock:
            self._stamps.append(stamp)
            self._seen = []

    def get(self, key: Hashable) -> Any:
        """Return the entry of a key, or None."""
        self.used = now = time.monotonic()
        if now - self._checked > CHECK_SECONDS:
            self._check(now)
        found = self.entries.get(key)  # atomic: no lock
        if found is not None and len(self.entries) > self._kept_in_order:
            with self._lock:
                if key in self.entries:
                    self.entries.move_to_end(key)
        return found

    def put(self, key: Hashable, value: Made) -> Made:
        """Store an entry; if there are more than the bound, the least recently used one is dropped."""
        with self._lock:
            self.entries[key] = value
            while len(self.entries) > self.most:
                self.entries.popitem(last=False)
        return value

    def clear(self) -> None:
        """Drop all plans, because a profile, wisdom, a strategy or the catalogue has changed."""
        with self._lock:
            self.entries.clear()
            self.generation += 1

    def accept(self) -> None:
        """Take the current values of all stamps as seen: this process has changed a file, and no plan depends on it."""
        found = [stamp() for stamp in self._stamps]
        with self._lock:
            self._seen = found

    def _check(self, now: float) -> None:
        found = [stamp() for stamp in self._stamps]
        with self._lock:
            changed, self._checked, self._seen = self._seen and found != self._seen, now, found
        if changed:
            self.clear()


plan_cache = PlanCache()
"""The cache of the process."""

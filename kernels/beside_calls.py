"""Work of background threads beside the calls of others: Python's lock and collector while it runs."""

from __future__ import annotations

import gc
import sys
import threading

SWITCH_SECONDS = 1e-4
"""Python's switch interval while plans are built beside calls: each operation of torch that a thread calls waits for
it, 5 ms by default, so that on an H100 a second of planning cost a second of calls. Python's collector of cycles rests
meanwhile: imports set it off, and it holds that lock for 0.2 to 0.3 s where torch is loaded."""


class _BesideCalls:
    """Within a with block of a thread of the background, calls of other threads wait little for Python's lock."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._usual, self._collects = sys.getswitchinterval(), True

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._usual, self._collects = sys.getswitchinterval(), gc.isenabled()
                sys.setswitchinterval(min(self._usual, SWITCH_SECONDS))
                gc.disable()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._restore()

    def forget(self) -> None:
        """Restore in a forked child what threads of its parent had set."""
        if self._inside:
            self._restore()
        self._lock, self._inside = threading.Lock(), 0

    def _restore(self) -> None:
        sys.setswitchinterval(self._usual)
        if self._collects:
            gc.enable()


beside_calls = _BesideCalls()
"""The one of the process."""

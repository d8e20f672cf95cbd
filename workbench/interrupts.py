"""Ctrl-C and SIGTERM as a wish to stop: what is found is kept; the second one stops at once."""

from __future__ import annotations

import atexit
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any, NoReturn

GRACE = 1.0
"""Seconds after the first signal until KeyboardInterrupt is raised, if the work has not stopped by then."""

SAME = 0.3
"""Seconds in which signals are one: `timeout` sends its signal to a process and to its group, which has the process."""

RETRY = 0.05
"""Seconds until KeyboardInterrupt is tried again, where it would be lost."""

AGAIN = 5.0
"""Seconds until KeyboardInterrupt is raised again in a process that has not ended: a destructor may have lost it."""

CALLED_BACK = frozenset({"llvmlite.binding.executionengine", "_weakrefset", "weakref"})
"""Modules whose functions are called back by C code that loses exceptions."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While entered, the first signal sets `wanted`; the second, or the end of GRACE, raises KeyboardInterrupt.

    Only the main thread gets signals: elsewhere nothing is changed.
    """

    def __init__(self) -> None:
        self.wanted = False
        self._first = 0.0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in _SIGNALS}
            self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.wanted:
            if time.monotonic() - self._first < SAME:
                return
            if _in_callback(frame):
                signal.setitimer(signal.ITIMER_REAL, RETRY)
                return
            _raise()
        self.wanted, self._first = True, time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, GRACE)
        print("stopping; once more stops at once", file=sys.stderr, flush=True)


def insist() -> None:
    """From now on a Ctrl-C raises KeyboardInterrupt until the process has ended, and never where it would be lost.

    A process whose SIGINT is ignored, as in the background of a shell, goes on ignoring it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
        signal.signal(signal.SIGALRM, _interrupt)
        atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)  # an end that takes long is no kill by SIGALRM


def _interrupt(number: int, frame: FrameType | None) -> None:
    lost = _in_callback(frame)
    signal.setitimer(signal.ITIMER_REAL, RETRY if lost else AGAIN)
    if not lost:
        _raise()


raised = False
"""Whether KeyboardInterrupt was raised by a signal: imports of C extensions make an ImportError of it."""


def _raise() -> NoReturn:
    global raised
    raised = True
    raise KeyboardInterrupt


def _in_callback(frame: FrameType | None) -> bool:
    """Return whether a frame is called by LLVM's engine or by a weak reference: an exception is printed, and lost."""
    while frame is not None:
        if frame.f_globals.get("__name__") in CALLED_BACK:
            return True
        frame = frame.f_back
    return False

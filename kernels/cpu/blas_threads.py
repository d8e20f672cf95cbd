"""The BLAS libraries of this process, and how long their idle threads spin before they sleep.

After a product each of OpenBLAS's threads spins for 2^28 clock cycles, a tenth of a second, and takes a part of every
core from what runs next. Measured on two cores, float32, after numpy's product: Strassen's scheme at 2048 takes 126 ms,
and 88 where idle threads sleep; 3x3x6:40 at 4096 takes 666 and 571 ms. So `sleep_soon` shortens the time; a
user's OPENBLAS_THREAD_TIMEOUT stays.

OpenBLAS reads the time when it starts its threads. It stops them itself before a fork, and starts them again with the
next product; both are repeated here, at a moment at which no other thread can be in a product.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Sequence
from functools import lru_cache
from types import FrameType
from typing import Any

VARIABLE = "OPENBLAS_THREAD_TIMEOUT"
"""An exponent of two, in clock cycles. OpenBLAS takes 4 to 30."""

DEFAULT, SHORT, SHORTEST = 28, 20, 16
"""Exponents of the time that idle threads spin.

DEFAULT: OpenBLAS's own, 0.1 s. SHORT: once products run on our own threads, 0.4 ms, so that a product that follows at
once finds its threads awake. SHORTEST: while candidates are compiled, 20 us. On 16 cores the compile process took 37
to 69 s beside threads that spin between products, and 4 to 9 s beside threads that sleep at once (exponent 4).
"""

HERTZ = 3e9
"""Of the counter of clock cycles, about."""

AGAIN_AFTER = 1.0
"""Seconds until a second look where another thread may have been in a product."""

WAITING = frozenset({
    ("threading", "wait"), ("threading", "_wait_for_tstate_lock"), ("selectors", "select"), ("queue", "get"),
    ("concurrent.futures.thread", "_worker"), ("subprocess", "_try_wait"),
})  # fmt: skip
"""Functions of the standard library in which a thread waits."""

SERVANTS = frozenset({"ipykernel", "zmq", "IPython", "_pydevd_bundle", "debugpy"})
"""Packages whose threads serve a notebook: they multiply no matrices."""


class _Spinning:
    """The exponent that was set, whether it is the user's, and when to look again after others did not wait."""

    exponent = DEFAULT
    fixed = False
    next_look = 0.0


_lock = threading.Lock()


def spin_seconds() -> float:
    """Return the seconds that idle threads of this process's BLAS libraries spin after a threaded product."""
    if not _spinning():
        return 0.0
    chosen = os.environ.get(VARIABLE, "")
    shortened = SHORT if all(_servers()) else DEFAULT
    exponent = min(max(int(chosen), 4), 30) if chosen.isdecimal() else shortened
    return 2.0**exponent / HERTZ


def sleep_soon(exponent: int = SHORT) -> None:
    """Let idle threads of OpenBLAS sleep after 2^exponent cycles, as soon as no other thread can be in a product.

    Costs next to nothing once it is done, or if there is nothing to be done.
    """
    if _Spinning.exponent == exponent or _Spinning.fixed or time.monotonic() < _Spinning.next_look:
        return
    if not _lock.acquire(blocking=False):
        return
    try:
        if os.environ.get(VARIABLE) or not getattr(sys, "_is_gil_enabled", lambda: True)():
            _Spinning.fixed = True  # by the user; or no lock keeps other threads from a product
        elif others_wait():
            for server in _servers():
                if server is not None:
                    _restart(server, exponent)
            _Spinning.exponent = exponent
        else:
            _Spinning.next_look = time.monotonic() + AGAIN_AFTER
    finally:
        _lock.release()


def others_wait() -> bool:
    """Return whether every other Python thread waits for something that is no product."""
    here = threading.get_ident()
    return all(thread == here or _waits(frame) for thread, frame in sys._current_frames().items())


def _waits(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return (module, frame.f_code.co_name) in WAITING or module.partition(".")[0] in SERVANTS


def _restart(server: Any, exponent: int) -> None:
    """Have a library read the time and stop its threads, which its next product starts.

    The interpreter's lock is held meanwhile, so that no other thread begins a product.
    """
    os.environ[VARIABLE] = str(exponent)
    try:
        server.openblas_read_env()
    finally:
        del os.environ[VARIABLE]
    if server.openblas_thread_timeout() == exponent:
        server.blas_thread_shutdown_()


@lru_cache(maxsize=1)
def blas_libraries() -> tuple[Any, ...]:
    """Return the BLAS libraries of this process whose number of threads can be set."""
    import threadpoolctl

    found = threadpoolctl.ThreadpoolController().lib_controllers
    return tuple(library for library in found if library.user_api == "blas")


def _spinning() -> Sequence[Any]:
    """Return the loaded libraries whose threads spin: OpenBLAS with threads of its own."""
    return [one for one in blas_libraries() if (one.internal_api, one.threading_layer) == ("openblas", "pthreads")]


@lru_cache(maxsize=1)
def _servers() -> tuple[Any, ...]:
    """Return these libraries with the functions of `_restart`, which keep the interpreter's lock; None without them."""
    found = []
    for library in _spinning():
        server = ctypes.PyDLL(library.filepath)
        names = "openblas_read_env", "openblas_thread_timeout", "blas_thread_shutdown_"
        found.append(server if all(hasattr(server, name) for name in names) else None)
    return tuple(found)

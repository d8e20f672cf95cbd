"""Threads that allocate, query and wait on a GPU while another thread captures a CUDA graph."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from functools import cache
from typing import Any

RELAXED = 2
"""CU_STREAM_CAPTURE_MODE_RELAXED."""


@contextlib.contextmanager
def beside_captures() -> Iterator[None]:
    """Within a with block this thread may allocate and query while another one captures a CUDA graph.

    By default such calls of any thread fail, and break the capture (cuThreadExchangeStreamCaptureMode in the CUDA
    driver API).
    """
    exchange, mode = _exchange(), ctypes.c_int(RELAXED)
    exchange(ctypes.byref(mode))
    try:
        yield
    finally:
        exchange(ctypes.byref(mode))


@cache
def _exchange() -> Any:
    """Return the driver's function, or one that does nothing: HIP has another one."""
    with contextlib.suppress(OSError, AttributeError):
        return ctypes.CDLL("libcuda.so.1").cuThreadExchangeStreamCaptureMode
    return lambda mode: None

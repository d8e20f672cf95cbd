"""Compiled linear maps on the CPU: one function a map and dtype, shared by all sizes and layouts."""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from .host import host
from .maps import LinearMap

SOURCES = ("maps.py", "native.py", "order.py", "rows_ir.py")
"""The files of this folder that determine the code."""

ARGUMENTS = (ctypes.c_int64,) * 7
"""Of the parameters of `rows_ir.PARAMETERS`."""

_lock = threading.Lock()
_kernels: dict[tuple[LinearMap, str], Callable[..., None]] = {}
_compiling: dict[tuple[LinearMap, str], threading.Lock] = {}


@cache
def _sources() -> str:
    """Return a hash of the files that determine the code."""
    hasher = hashlib.sha256()
    for name in SOURCES:
        hasher.update(Path(__file__).with_name(name).read_bytes())
    return hasher.hexdigest()


def rows_kernel(linear: LinearMap, dtype: str) -> Callable[..., None]:
    """Return the compiled function of a map, with the parameters of `rows_ir.rows_module`; a call releases the GIL.

    Equal maps share one, and other threads may compile other maps meanwhile.

    Raises:
        PlanError: a coefficient of an integer map is a fraction.
    """
    key = linear, dtype
    if (kernel := _kernels.get(key)) is not None:
        return kernel
    with _lock:
        compiling = _compiling.setdefault(key, threading.Lock())
    with compiling:
        if key not in _kernels:
            from .native import loaded

            _kernels[key] = loaded(rows_code(linear, dtype), "rows", ARGUMENTS)
        return _kernels[key]


def rows_code(linear: LinearMap, dtype: str) -> bytes:
    """Return the machine code of a map, from the disk or compiled now.

    Raises:
        PlanError: see `rows_kernel`.
    """
    from .native import compiled

    def module() -> Any:
        from .rows_ir import rows_module

        return rows_module(linear, dtype, host())

    return compiled(f"{_sources()} {host()} {dtype} {linear}", module)


def _forget_locks() -> None:
    global _lock
    _lock = threading.Lock()
    _compiling.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)  # a forked child has none of the threads that held them

"""Memory for executors: aligned buffers that are pooled and reused."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

ALIGNMENT = 64
"""Bytes of a cache line and of the widest vector; every allocated array starts on a multiple of it."""

Bytes = npt.NDArray[np.uint8]


def aligned(nbytes: int) -> int:
    """Return the next multiple of ALIGNMENT."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


class Arena:
    """One buffer, allocated from the front; `rest` returns the free part as an arena for temporary use."""

    def __init__(self, memory: Bytes) -> None:
        self._memory = memory

    def array(self, shape: tuple[int, ...], dtype: np.dtype) -> npt.NDArray[np.generic]:
        """Return an uninitialised C-ordered array that starts on a multiple of 64 bytes."""
        nbytes = math.prod(shape) * dtype.itemsize
        piece, self._memory = self._memory[:nbytes], self._memory[aligned(nbytes) :]
        return piece.view(dtype).reshape(shape)

    def split(self, count: int, nbytes: int) -> list[Arena]:
        """Return arenas of `nbytes` bytes each, side by side in the free part; allocate nothing while they are used."""
        size = aligned(nbytes)
        return [Arena(self._memory[i * size : (i + 1) * size]) for i in range(count)]

    def rest(self) -> Arena:
        return Arena(self._memory)


def _quarter_of_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, ValueError, OSError):  # not available on this system
        return 2 << 30


class Pool:
    """Lends buffers and caches up to `keep` idle bytes, because fresh pages cost as much as the sums.

    By default `keep` is a quarter of the machine's memory.
    `high_water` is the most bytes that were lent at once. With `poison`, a buffer is filled with NaN
    (int64: a large odd number) when it is lent, so that reading it before it is
    written shows. Thread-safe.
    """

    def __init__(self, keep: int | None = None, poison: bool = False) -> None:
        self.keep, self.poison = _quarter_of_memory() if keep is None else keep, poison
        self.high_water = 0
        self._out = 0
        self._idle: list[Bytes] = []
        self._lock = threading.Lock()

    @contextmanager
    def take(self, nbytes: int) -> Iterator[Arena]:
        """Lend an arena of `nbytes` bytes for the time of a with block."""
        size = aligned(nbytes)
        buffer = self._acquire(size)
        if self.poison:
            buffer.fill(0xFF)
        try:
            yield Arena(buffer[:size])
        finally:
            self._release(buffer, size)

    def trim(self) -> None:
        """Return all idle memory to the system."""
        with self._lock:
            self._idle.clear()

    def _acquire(self, size: int) -> Bytes:
        with self._lock:
            self._out += size
            self.high_water = max(self.high_water, self._out)
            # A much larger buffer is left for requests of its own size.
            fitting = [i for i, buffer in enumerate(self._idle) if size <= len(buffer) <= 2 * size + 4096]
            if fitting:
                return self._idle.pop(min(fitting, key=lambda i: len(self._idle[i])))
        try:
            return _fresh(size)
        except BaseException:
            with self._lock:
                self._out -= size
            raise

    def _release(self, buffer: Bytes, size: int) -> None:
        with self._lock:
            self._out -= size
            self._idle.append(buffer)
            while self._idle and sum(map(len, self._idle)) > self.keep:
                self._idle.pop(0)


shared_pool = Pool()
"""The pool of all executors that are created without one."""


def empty_aligned(shape: tuple[int, ...], dtype: np.dtype) -> npt.NDArray[np.generic]:
    """Return an uninitialised C-ordered array that starts on a multiple of 64 bytes, owned by the caller."""
    return _fresh(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)


def _fresh(nbytes: int) -> Bytes:
    """Allocate so many bytes from a multiple of ALIGNMENT on."""
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + nbytes]

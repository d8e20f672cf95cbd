"""Memory for executors: aligned buffers that are kept and handed out again."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

ALIGNMENT = 64
"""Bytes of a cache line, of the widest vector, and of every start of a carved piece."""

Bytes = npt.NDArray[np.uint8]


def aligned(nbytes: int) -> int:
    """The next multiple of ALIGNMENT."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


class Arena:
    """One buffer, cut from the front; `rest` hands the uncut part to someone who returns it at once."""

    def __init__(self, memory: Bytes) -> None:
        self._memory = memory

    def array(self, shape: tuple[int, ...], dtype: np.dtype) -> npt.NDArray[np.generic]:
        """An uninitialised C-ordered array that starts on a multiple of 64 bytes."""
        nbytes = math.prod(shape) * dtype.itemsize
        piece, self._memory = self._memory[:nbytes], self._memory[aligned(nbytes) :]
        return piece.view(dtype).reshape(shape)

    def split(self, count: int, nbytes: int) -> list[Arena]:
        """Arenas of `nbytes` bytes each, side by side in the uncut part; cut nothing while they are in use."""
        size = aligned(nbytes)
        return [Arena(self._memory[i * size : (i + 1) * size]) for i in range(count)]

    def rest(self) -> Arena:
        return Arena(self._memory)


def _quarter_of_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, ValueError, OSError):  # not known on this system
        return 2 << 30


class Pool:
    """Hands out buffers and keeps up to `keep` idle bytes, because fresh pages cost as much as the sums.

    Where `keep` is not given it is a quarter of the machine's memory.
    `high_water` is the most bytes that were out at once. With `poison`, a buffer is full of NaN
    (int64: of a large odd number) when it is handed out, so that a piece that is read before it is
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
        """An arena of `nbytes` bytes for the time of a with block."""
        size = aligned(nbytes)
        buffer = self._acquire(size)
        if self.poison:
            buffer.fill(0xFF)
        try:
            yield Arena(buffer[:size])
        finally:
            self._release(buffer, size)

    def trim(self) -> None:
        """Give all idle memory back to the system."""
        with self._lock:
            self._idle.clear()

    def _acquire(self, size: int) -> Bytes:
        with self._lock:
            self._out += size
            self.high_water = max(self.high_water, self._out)
            # A much larger buffer stays for its own kind of request.
            fitting = [i for i, buffer in enumerate(self._idle) if size <= len(buffer) <= 2 * size + 4096]
            if fitting:
                return self._idle.pop(min(fitting, key=lambda i: len(self._idle[i])))
        try:
            raw = np.empty(size + ALIGNMENT, np.uint8)
        except BaseException:
            with self._lock:
                self._out -= size
            raise
        start = -raw.ctypes.data % ALIGNMENT
        return raw[start : start + size]

    def _release(self, buffer: Bytes, size: int) -> None:
        with self._lock:
            self._out -= size
            self._idle.append(buffer)
            while self._idle and sum(map(len, self._idle)) > self.keep:
                self._idle.pop(0)


shared_pool = Pool()
"""The pool of all executors that are not given one."""


def empty_aligned(shape: tuple[int, ...], dtype: np.dtype) -> npt.NDArray[np.generic]:
    """An uninitialised C-ordered array that starts on a multiple of 64 bytes, owned by the caller."""
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + nbytes].view(dtype).reshape(shape)

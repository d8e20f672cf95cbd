"""Row ranges worked by a few threads of our own.

Not OpenMP: its workers spin after every region and take the processor from BLAS's threads, which
costs more than the sums themselves (measured: 208 against 252 GF/s, 4096, two cores).
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from ...errors import PlanError

_lock = threading.Lock()
_workers: ThreadPoolExecutor | None = None

PARTS_A_THREAD = 4
"""Row ranges handed out a thread: a thread that is late leaves its last ones to the others."""


def thread_count() -> int:
    """LCMA_NUM_THREADS, or the processors this process may use, at most as many as BLAS is allowed.

    It governs the sums only: BLAS keeps the limit that it has.

    Raises:
        PlanError: LCMA_NUM_THREADS is not a positive number.
    """
    if chosen := os.environ.get("LCMA_NUM_THREADS"):
        if not chosen.isdecimal() or int(chosen) < 1:
            raise PlanError(f"LCMA_NUM_THREADS must be a positive number, not {chosen!r}")
        return int(chosen)
    limits: list[int] = [library["num_threads"] for library in _controller().info() if library["user_api"] == "blas"]
    return max(1, min([_processors(), *limits]))


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@lru_cache(maxsize=1)
def _controller() -> Any:
    import threadpoolctl

    return threadpoolctl.ThreadpoolController()


def over_rows(work: Callable[[int, int], None], rows: int, threads: int) -> None:
    """Call work(first, last) on ranges that cover 0 <= row < rows, from up to `threads` threads.

    The caller is one of them. `work` must release the GIL to gain anything.
    """
    parts = min(rows, threads * PARTS_A_THREAD)
    if threads <= 1 or parts <= 1:
        work(0, rows)
        return
    turn = itertools.count()

    def take() -> None:
        while (part := next(turn)) < parts:
            work(rows * part // parts, rows * (part + 1) // parts)

    pool = _pool()
    helpers = [pool.submit(take) for _ in range(threads - 1)]
    try:
        take()
    finally:
        for helper in helpers:
            # A helper that has not started finds no part left: it need not be waited for.
            if not helper.cancel():
                helper.result()


def _pool() -> ThreadPoolExecutor:
    global _workers
    with _lock:
        if _workers is None:
            _workers = ThreadPoolExecutor(max_workers=max(1, 2 * (os.cpu_count() or 1)), thread_name_prefix="lcma")
        return _workers


def _forget() -> None:
    global _workers, _lock
    _workers, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # a forked child has none of the parent's threads

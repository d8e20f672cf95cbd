"""Row ranges and tasks executed by a few threads of our own.

OpenMP is not used: its workers spin after every region and compete with BLAS's threads, which
costs more than the sums themselves (measured: 208 against 252 GF/s, 4096, two cores).
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from ...errors import PlanError
from .blas_threads import blas_libraries, sleep_soon

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_lock = threading.Lock()
_workers: ThreadPoolExecutor | None = None

PARTS_A_THREAD = 4
"""Row ranges per thread: the last ranges of a slow thread are run by the others."""


def thread_count() -> int:
    """Return LCMA_NUM_THREADS, or the number of processors this process may use, at most BLAS's limit.

    It limits the sums and the products that are executed as tasks; a product by all threads uses
    BLAS's own limit.

    Raises:
        PlanError: LCMA_NUM_THREADS is not a positive number.
    """
    if chosen := os.environ.get("LCMA_NUM_THREADS"):
        if not chosen.isdecimal() or int(chosen) < 1:
            raise PlanError(f"LCMA_NUM_THREADS must be a positive number, not {chosen!r}")
        return int(chosen)
    threads = _processors(int(time.monotonic()))
    if _single.limits:
        return max(1, min(threads, *_single.limits))
    for limit_of in _limits_of_blas():
        if (limit := limit_of()) < threads:
            threads = limit
    return threads if threads > 1 else 1


def blas_limit() -> int:
    """Return the least number of threads that a BLAS of this process may use now: a cheap look at what changes most."""
    if _single.limits:
        return min(_single.limits)
    return min((limit_of() for limit_of in _limits_of_blas()), default=1)


@lru_cache(maxsize=1)
def _processors(second: int) -> int:
    """Return the number of processors that this process may use, read once a second: every look-up of a plan asks."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@lru_cache(maxsize=1)
def _limits_of_blas() -> tuple[Callable[[], int], ...]:
    """Return functions that return the current numbers of threads of the BLAS libraries."""
    return tuple(library.get_num_threads for library in blas_libraries())


def blas_is_limited() -> bool:
    """Return whether `single_threaded_blas` has an effect: whether a supported BLAS is loaded."""
    return bool(blas_libraries())


class _Single:
    """State of `single_threaded_blas`: the number of entered blocks, and the limits to restore after the last exit."""

    inside = 0
    limits: tuple[int, ...] = ()


_single = _Single()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Within a with block, BLAS executes every call on the calling thread.

    The limit applies to the whole process: meanwhile products of other threads also run on one thread each.
    """
    with _lock:
        if not _single.inside:
            libraries = blas_libraries()
            _single.limits = tuple(library.num_threads for library in libraries)
            for library in libraries:
                library.set_num_threads(1)
        _single.inside += 1
    try:
        yield
    finally:
        with _lock:
            _single.inside -= 1
            if not _single.inside:
                limits, _single.limits = _single.limits, ()
                for library, limit in zip(blas_libraries(), limits, strict=True):
                    library.set_num_threads(limit)


def parallel_rows(work: Callable[[int, int], None], rows: int, threads: int) -> None:
    """Call work(first, last) on ranges that cover 0 <= row < rows, from up to `threads` threads.

    The caller is one of them. `work` must release the GIL to gain anything.
    """
    parts = min(rows, threads * PARTS_A_THREAD)
    if threads <= 1 or parts <= 1:
        work(0, rows)
        return
    parallel_tasks(lambda part, _: work(rows * part // parts, rows * (part + 1) // parts), parts, threads)


def parallel_tasks(work: Callable[[int, int], None], tasks: int, threads: int) -> None:
    """Call work(task, worker) for 0 <= task < tasks, each worker a thread; the caller is worker 0.

    Tasks are assigned in order to idle workers. The first error is raised after all workers have stopped.
    """
    if threads > 1:
        sleep_soon()
    turn = itertools.count()

    def take(worker: int) -> None:
        while (task := next(turn)) < tasks:
            work(task, worker)

    pool = _pool()
    helpers = [pool.submit(take, worker) for worker in range(1, min(threads, tasks))]
    try:
        take(0)
    finally:
        for helper in helpers:
            # A helper that has not started would find no task left, so it is not waited for.
            if not helper.cancel():
                helper.result()


def _pool() -> ThreadPoolExecutor:
    global _workers
    with _lock:
        if _workers is None:
            from concurrent.futures import ThreadPoolExecutor

            _workers = ThreadPoolExecutor(max_workers=max(1, 2 * (os.cpu_count() or 1)), thread_name_prefix="lcma")
        return _workers


def _forget() -> None:
    global _workers, _lock, _single
    _workers, _lock, _single = None, threading.Lock(), _Single()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # a forked child has none of the parent's threads

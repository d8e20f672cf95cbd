"""Idle threads of OpenBLAS: how long they spin is shortened once, safely, and never against the user's setting."""

from __future__ import annotations

import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lcma.kernels.cpu import blas_threads

PROBE = """
import os, threading
import numpy as np
from lcma.kernels.cpu import blas_threads
from lcma.kernels.cpu.threads import parallel_tasks

a = np.arange(300.0 * 300).reshape(300, 300) % 7
wanted = a @ a
{before}
for _ in range({rounds}):
    blas_threads._Spinning.next_look = 0.0
    blas_threads.sleep_soon(blas_threads.SHORTEST)
    assert (a @ a == wanted).all()
    blas_threads._Spinning.next_look = 0.0
    parallel_tasks(lambda task, worker: None, 4, 2)
    assert (a @ a == wanted).all()
{after}
exponents = {{server.openblas_thread_timeout() for server in blas_threads._servers() if server is not None}}
print(*exponents, os.environ.get(blas_threads.VARIABLE))
"""


@pytest.fixture
def probe(monkeypatch, new_process):
    """probe(before, after, rounds, **environment): the exponent of a process's libraries, and the variable."""
    monkeypatch.delenv(blas_threads.VARIABLE, raising=False)

    def run(before: str = "", after: str = "", rounds: int = 1, **environment: str) -> str:
        return new_process(PROBE.format(before=before, after=after, rounds=rounds), **environment).strip()

    return run


needs_openblas = pytest.mark.skipif(
    not any(blas_threads._servers()), reason="no OpenBLAS whose threads can be started again"
)


@needs_openblas
def test_the_first_tasks_shorten_it_unless_the_user_has_set_it(probe):
    assert probe(rounds=20) == f"{blas_threads.SHORT} None"
    before = """
from lcma.workbench.cli import main
assert main(["time", "strassen", "300", "--rounds", "1", "--json"]) == 0
"""
    assert probe(before).splitlines()[-1] == f"{blas_threads.SHORT} None"
    assert probe(OPENBLAS_THREAD_TIMEOUT="24") == "24 24"


@needs_openblas
@pytest.mark.parametrize("rounds", [15, pytest.param(120, marks=pytest.mark.slow)])
def test_products_of_other_threads_are_never_harmed(probe, rounds):
    """Three threads multiply all the time: nothing is shortened, however often it is tried."""
    before = """
stop, right = threading.Event(), []
def multiply():
    while not stop.is_set():
        right.append((a @ a == wanted).all())
others = [threading.Thread(target=multiply) for _ in range(3)]
for other in others: other.start()
"""
    after = """
stop.set()
for other in others: other.join()
assert all(right) and len(right) > 20
"""
    assert probe(before, after, rounds=rounds).endswith("None")


def test_only_threads_that_wait_are_disregarded():
    event, tasks, ends = threading.Event(), queue.Queue(), threading.Event()

    def works():
        while not ends.is_set():
            pass

    waiting = [threading.Thread(target=event.wait), threading.Thread(target=tasks.get)]
    busy = threading.Thread(target=works)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        try:
            for thread in (*waiting, busy):
                thread.start()
            frames = sys._current_frames()
            assert all(blas_threads._waits(frames[thread.ident]) for thread in (*waiting, *pool._threads))
            assert not blas_threads._waits(frames[busy.ident])
            assert not blas_threads.others_wait()
        finally:
            ends.set()
            event.set()
            tasks.put(None)
            for thread in (busy, *waiting):
                thread.join()


def test_a_price_is_for_the_time_that_threads_will_spin(monkeypatch):
    library = type("Library", (), {"internal_api": "openblas", "threading_layer": "pthreads"})()
    monkeypatch.setattr(blas_threads, "blas_libraries", lambda: (library,))
    for server, variable, exponent in (
        (object(), None, blas_threads.SHORT),
        (None, None, blas_threads.DEFAULT),
        (object(), "26", 26),
        (object(), "2", 4),
    ):
        monkeypatch.setattr(blas_threads, "_servers", lambda server=server: (server,))
        monkeypatch.delenv(blas_threads.VARIABLE, raising=False)
        if variable:
            monkeypatch.setenv(blas_threads.VARIABLE, variable)
        assert blas_threads.spin_seconds() == pytest.approx(2.0**exponent / 3e9)
    monkeypatch.setattr(blas_threads, "blas_libraries", lambda: ())
    assert blas_threads.spin_seconds() == 0.0

"""Compiled code on disk: one process compiles a function, whoever else needs it waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

SLOW = '''"""A function that takes about a second to compile."""

from lcma.jit import njit


@njit
def helper(x):
    return x + 1


@njit
def many(x):
    total = 0
{lines}
    return total
'''.format(lines="\n".join(f"    total += helper(x) * {i} if x % {i + 2} else total >> 1" for i in range(60)))

CALL = """import sys, time
from numba.core import event
sys.path.insert(0, sys.argv[1])
import slow
with event.install_recorder("numba:compile") as seen:
    print(slow.many(7), flush=True)
print(sum(e.is_start for _, e in seen.buffer))
"""

HOLD = """import sys, time
sys.path.insert(0, sys.argv[1])
import slow
with slow.many._cache.alone():
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def start(tmp_path):
    """start(program): a process that runs it beside the module `slow`, with an empty cache of compiled code."""
    (tmp_path / "slow.py").write_text(SLOW)
    environment = {**os.environ, "LCMA_HOME": str(tmp_path / "home")}
    running = []

    def begin(program: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, str(tmp_path)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment))
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def answer(process: subprocess.Popen[str]) -> tuple[int, int]:
    """The result of the function, and how many functions the process compiled."""
    out, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    result, compiled = map(int, out.split())
    return result, compiled


def test_processes_that_start_together_compile_a_function_once(start):
    answers = [answer(process) for process in [start(CALL) for _ in range(4)]]
    assert len({result for result, _ in answers}) == 1
    assert sum(compiled for _, compiled in answers) == 2  # the function and its helper


def test_a_killed_process_holds_nobody_up(start):
    holder = start(HOLD)
    assert holder.stdout.readline() == "held\n"
    waiting = start(CALL)
    time.sleep(3)
    assert waiting.poll() is None
    holder.send_signal(signal.SIGKILL)
    assert answer(waiting)[1] == 2


def test_compiling_goes_on_where_no_file_can_be_locked(start, tmp_path):
    (tmp_path / "home").write_text("a file where the folder of the cache should be")
    assert answer(start(CALL))[1] == 2

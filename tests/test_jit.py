"""Compiled code on disk: one process compiles a function, whoever else needs it waits."""

import ast
import multiprocessing
import os
import time
from pathlib import Path

import pytest

BEFORE = """import os, sys
from numba.core import config
os.environ.update(environment)
sys.path.insert(0, folder)
config.reload_config()  # reads NUMBA_OPT
"""
"""Comes first in all programs, which are given `environment`, `folder`, and `said` to send what they find."""

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["lcma.jit"])  # imported once: numba takes longer than all else that the processes do

SLOW = '''"""A function that takes a quarter of a second to compile."""

from lcma.jit import njit


@njit
def helper(x):
    return x + 1


@njit
def many(x):
    total = 0
{lines}
    return total
'''.format(lines="\n".join(f"    total += helper(x) * {i} if x % {i + 2} else total >> 1" for i in range(12)))

CALL = """from numba.core import event
import slow
with event.install_recorder("numba:compile") as seen:
    result = slow.many(7)
said.send((result, sum(e.is_start for _, e in seen.buffer)))
"""

HOLD = """import time
import slow
with slow.many._cache.alone():
    said.send("held")
    time.sleep(600)
"""


CLOSURES = """from numba import njit as uncached
from lcma.jit import named, njit


def adding(number):
    # Too long to become parts of their callers.
    def least(x):
        return x + number if x > 3 else x - number

    def inner(x):
        total = number
        for one in range(x):
            if one % 3 == 0:
                total += least(one) + one // 7
            elif one % 5 == 1:
                total -= one * one % 11
            else:
                total ^= one
        return total

    least = uncached(named(least, str(number)))
    inner = uncached(named(inner, str(number)))

    @njit(variant=str(number))
    def outer(x):
        return inner(x) + inner(x + 1) * inner(x + 2) - inner(x + 3)

    return outer
"""

CALL_CLOSURES = """from itertools import count
from numba.core import event
from numba.core.bytecode import FunctionIdentity
from closures import adding
def called(number):
    FunctionIdentity._unique_ids = count(1_000_000)  # as in another process, which compiled it first
    return adding(number)(20)
with event.install_recorder("numba:compile") as seen:
    results = called(3), called(5)
said.send((*results, sum(e.is_start for _, e in seen.buffer)))
"""


@pytest.fixture
def start(tmp_path):
    """start(program, **environment): a process that runs it beside the module `slow`, and sends on its `said`.

    Code is cached in `home`.
    """
    (tmp_path / "slow.py").write_text(SLOW)
    home, running = {"LCMA_HOME": str(tmp_path / "home")}, []

    def begin(program, **changed):
        receiving, sending = FORKS.Pipe(duplex=False)
        given = {"environment": {**home, **changed}, "folder": str(tmp_path), "said": sending}
        process = FORKS.Process(target=exec, args=(BEFORE + program, given))
        process.start()
        process.said = receiving
        sending.close()
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.join()


def answer(process):
    """The results of the functions, and how many functions the process compiled."""
    assert process.said.poll(100)
    found = process.said.recv()
    process.join(100)
    assert process.exitcode == 0
    return found


def test_processes_that_start_together_compile_a_function_once_for_each_level_of_optimisation(start):
    answers = [answer(process) for process in [start(CALL, NUMBA_OPT="1") for _ in range(2)]]
    assert len({result for result, _ in answers}) == 1
    assert sum(compiled for _, compiled in answers) == 2  # the function and its helper
    compiled = [answer(start(CALL, NUMBA_OPT=level))[1] for level in ("3", "1")]
    assert compiled == [2, 0]


def test_a_killed_process_holds_nobody_up(start):
    holder = start(HOLD)
    assert holder.said.recv() == "held"
    waiting = start(CALL)
    assert not waiting.said.poll(1)
    holder.kill()
    assert answer(waiting)[1] == 2


def test_compiling_goes_on_where_no_file_can_be_locked(start, tmp_path):
    (tmp_path / "home").write_text("a file where the folder of the cache should be")
    assert answer(start(CALL))[1] == 2


def test_a_run_of_tests_leaves_little_compiled_code(request, tmp_path, monkeypatch):
    conftest = request.config.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    monkeypatch.setattr(conftest, "_LARGEST_CACHE", 250)
    for name, days in (("now", 0), ("yesterday", 1), ("before", 2), ("long ago", 8)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "entry").write_bytes(bytes(100))
        os.utime(tmp_path / name, (time.time() - days * 24 * 3600,) * 2)
    conftest._prune(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"now", "yesterday"}
    monkeypatch.setattr(conftest, "_LARGEST_CACHE", 1 << 30)
    os.utime(tmp_path / "yesterday", (time.time() - 8 * 24 * 3600,) * 2)
    conftest._prune(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"now"}


@pytest.mark.slow
def test_variants_of_a_closure_are_loaded_by_the_next_process(start, tmp_path, monkeypatch):
    (tmp_path / "closures.py").write_text(CLOSURES)
    outputs = [answer(start(CALL_CLOSURES)) for _ in range(2)]
    monkeypatch.setattr("numba.njit", lambda function: function)
    monkeypatch.setattr("lcma.jit.njit", lambda variant: lambda function: function)
    module = {}
    exec(CLOSURES, module)
    interpreted = [module["adding"](number)(20) for number in (3, 5)]
    assert outputs == [(*interpreted, 6), (*interpreted, 0)]


def test_functions_without_a_wrapper_are_called_by_compiled_code_alone():
    """A call from Python would end the process: nothing but compiled functions reads their names."""
    root = Path(__file__).parents[1]
    bare, read_by_python = set(), set()
    for path in [path for folder in ("search", "tests/search") for path in (root / folder).rglob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        made = {
            one: " ".join(map(ast.unparse, one.decorator_list)) for one in tree.body if hasattr(one, "decorator_list")
        }
        bare |= {(path.stem, one.name) for one, text in made.items() if "internal" in text or "forceinline" in text}
        known = {(path.stem, one.name) for one in made}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                known |= {(node.module.rpartition(".")[2], one.name) for one in node.names}
        others = [one for one in tree.body if not made.get(one, "").startswith(("compiled", "njit"))]
        read = {node.id for one in others for node in ast.walk(one) if isinstance(node, ast.Name)}
        read_by_python |= {one for one in known if one[1] in read}
    assert len(bare) > 100
    assert not bare & read_by_python

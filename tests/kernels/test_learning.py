"""Learning in use on this processor: the vendor answers, calls are timed, others are compiled, the winner is wisdom."""

import gc
import json
import math
import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import lcma
from lcma.kernels import Request, api, compile_process, contenders, decision_for, learning, machine_for
from lcma.kernels.beside_calls import SWITCH_SECONDS
from lcma.kernels.compile_process import CompileProcess
from lcma.kernels.cpu.level import Level
from lcma.kernels.cpu.machine import profile_for
from lcma.kernels.factored import factored_request
from lcma.kernels.planning import wisdom
from lcma.kernels.planning.cache import plan_cache
from lcma.kernels.planning.trials import lesson as trials_lesson
from lcma.kernels.products import arrays
from lcma.kernels.structured.chain import KroneckerSparse
from lcma.kernels.structured.pattern import Pattern

from .cases import fails
from .plugin import Plugin

SIZES = 136, 128, 144
A, B = (np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in (SIZES[:2], SIZES[1:]))
EXACT = A.astype(np.float64) @ B


@pytest.fixture
def learner(settled_home, own_learner, monkeypatch):
    """A learner of small products, too, which are otherwise left to the library without planning."""
    for module in (api, arrays):
        monkeypatch.setattr(module, "SMALL", 0)
    return own_learner


@pytest.fixture
def stored(wait_for):
    """stored(): the wisdom, once it is written."""
    return lambda: wait_for(lambda: wisdom.stored_wisdom(profile_for().id))


@pytest.fixture
def settled(learner, timed_by_table, monkeypatch, stored):
    """settled(seconds): the decided lesson of a table's seconds, whose wisdom is stored and whose plan is cached."""

    def settle(seconds):
        timed_by_table(seconds)
        lesson, _ = multiply_until(decided), stored()
        monkeypatch.setattr(plan_cache, "_checked", math.inf)  # what was written is a change, which drops cached plans
        lcma.matmul(A, B)
        return lesson

    return settle


def error(c):
    """The error of A B, relative to its norm."""
    return np.linalg.norm(c - EXACT) / np.linalg.norm(EXACT)


def multiply_until(wanted, calls=400):
    """Multiply A by B until `wanted(lesson)`, which is returned; every product must be right."""
    for _ in range(calls):
        assert error(lcma.matmul(A, B)) < 1e-5
        lesson = next((one for one in learning.learner._lessons.values() if one is not None), None)
        if lesson is not None and wanted(lesson):
            return lesson
        time.sleep(0.001)  # the background needs a moment that a test has no other use for
    raise AssertionError("not within so many calls")


@pytest.fixture
def said(monkeypatch):
    """The warnings of learning."""
    texts = []
    monkeypatch.setattr(learning.warnings, "warn", lambda text, **_: texts.append(text))
    return texts


def decided(lesson):
    return lesson.trial.decided and lesson.trial.median is not None


def test_the_first_call_runs_numpy_and_loads_neither_schemes_nor_the_planner(home, new_process):
    code = """
import sys
import numpy as np
import lcma
from lcma.kernels import learning
learning.Learner._start = lambda self: None
a, b = np.random.default_rng(0).standard_normal((2, 800, 800)).astype(np.float32)
assert (lcma.matmul(a, b) == np.matmul(a, b)).all() and len(learning.learner._jobs) == 1
late = ("schemes_db.scheme", "kernels.compile_process", "kernels.contenders", "kernels.planning.planner")
print([name for name in late if f"lcma.{name}" in sys.modules])
"""
    assert new_process(code, LCMA_LEARN="1") == "[]\n"


def test_a_faster_scheme_wins_is_stored_and_serves_new_plans_and_the_next_process(learner, timed_by_table, stored):
    timed_by_table({"vendor": 4e-3, "scheme": 3e-3})
    before = lcma.plan(A, B)
    assert multiply_until(decided).plan.candidate.strategy == "scheme"
    (record,) = stored().records
    assert record.sizes == (*SIZES, 1)
    assert record.entries[0].strategy == "scheme"
    assert record.entries[0].seconds == pytest.approx(3e-3)
    # A new learner, as in another process, starts with what was stored.
    learning.learner = learning.Learner()
    plan_cache.clear()
    assert multiply_until(lambda lesson: True).plan.candidate.strategy == "scheme"
    found = decision_for(Request(*SIZES))
    assert (found.plan.candidate.strategy, found.measured) == ("scheme", True)
    assert lcma.plan(A, B).candidate.strategy == "scheme"
    assert before.candidate.strategy == "vendor"  # a plan stays what it is
    np.testing.assert_array_equal(before.run(A, B), np.matmul(A, B))


def test_a_slower_scheme_loses_and_the_library_is_called_directly(settled, stored):
    settled({"vendor": 3e-3, "scheme": 4e-3})
    assert stored().records[0].entries[0].strategy == "vendor"
    executor = plan_cache.get(arrays.key_of(A, B))
    assert [executor.left_to("numpy") for _ in range(40)].count(True) == 38


@pytest.mark.usefixtures("one_thread")
def test_calls_are_lent_to_the_library_up_to_the_one_that_is_timed(settled, monkeypatch):
    lesson, looked = settled({"vendor": 3e-3, "scheme": 4e-3}), []
    monkeypatch.setattr(api, "repeated", lambda *operands: (looked.append(1), arrays.repeated(*operands))[1])
    before = lesson.calls
    for _ in range(20 * lesson.watched):
        np.testing.assert_array_equal(lcma.matmul(A, B), np.matmul(A, B))
    assert 20 <= len(looked) <= 80  # 16 calls of 3 ms, which take 50 ms, are lent of 20
    assert lesson.calls >= before + 19 * lesson.watched
    plan_cache.clear()
    with monkeypatch.context() as patched:
        patched.setattr(api, "numpy_matmul", None)  # nothing is lent when what is known has changed
        np.testing.assert_array_equal(lcma.matmul(A, B), np.matmul(A, B))


def test_a_scheme_that_runs_out_of_memory_leaves_the_product_right(learner, timed_by_table, monkeypatch):
    timed_by_table({"vendor": 3e-3, "scheme": 4e-3})
    monkeypatch.setattr(Level, "run", fails(MemoryError("no memory")))
    trial = multiply_until(decided).trial
    assert trial.failed == {trial.contenders - 1}


def test_a_decided_scheme_is_repeated_without_a_request_and_without_memory_the_library_helps(settled, monkeypatch):
    lesson = settled({"vendor": 4e-3, "scheme": 3e-3})
    before, run, runs = lesson.calls, Level.run, []
    monkeypatch.setattr(Level, "run", lambda level, *operands: (runs.append(level), run(level, *operands)))
    with monkeypatch.context() as patched:
        patched.setattr(arrays, "Request", None)
        c = lcma.matmul(A, B)
    assert len(runs) == 1
    assert lesson.calls == before
    requests = []
    with monkeypatch.context() as patched:
        patched.setattr(arrays, "key_of", lambda a, b, key_of=arrays.key_of: (requests.append(1), key_of(a, b))[1])
        for _ in range(2 * lesson.watched):
            lcma.matmul(A, B)
    assert len(runs) == 1 + 2 * lesson.watched
    assert len(requests) == 2 * lesson.watched  # each was looked up once, and none is stored again
    assert lesson.calls >= before + 2 * lesson.watched - 1
    assert error(c) < 1e-5
    monkeypatch.setattr(Level, "run", fails(MemoryError("no memory")))
    np.testing.assert_array_equal(lcma.matmul(A, B), np.matmul(A, B))
    assert lesson.plan.candidate.strategy == "vendor"


def test_the_collector_rests_while_plans_are_loaded(timed_by_table, learner, monkeypatch):
    timed_by_table({"vendor": 1.0, "scheme": 0.8})
    found, usual = [], sys.getswitchinterval()
    monkeypatch.setattr(contenders, "_load", lambda plan: found.append((gc.isenabled(), sys.getswitchinterval())))
    multiply_until(decided)
    assert found == [(False, pytest.approx(SWITCH_SECONDS))]
    learner.end()  # a lesson can be decided before the thread that loaded its plans has restored both
    assert gc.isenabled()
    assert sys.getswitchinterval() == usual


@pytest.mark.parametrize("reason", ["the environment", "paused", "deterministic", "a process group", "learn=False"])
def test_learning_is_switched_off(learner, switched_off, reason):
    with switched_off(reason):
        assert learning.allowed() == (reason == "learn=False")
        assert error(lcma.matmul(A, B, learn=reason != "learn=False")) < 1e-5
    assert not learner._lessons
    assert learning.allowed()


def test_tensors_are_learned_unless_gradients_are_wanted(learner):
    torch = pytest.importorskip("torch")
    a, b = (torch.from_numpy(x).requires_grad_() for x in (A, B))
    from lcma.kernels.torch.ops import bilinear_mm

    bilinear_mm(a, b, "auto").sum().backward()
    assert not learner._lessons
    with torch.no_grad():
        lcma.matmul(a, b)
    assert learner._lessons


def test_without_threads_products_are_the_vendors_and_one_warning_says_why(learner, monkeypatch):
    monkeypatch.setattr(threading.Thread, "start", fails(RuntimeError("can't start new thread")))
    with pytest.warns(UserWarning, match="can't start new thread"):
        np.testing.assert_array_equal(lcma.matmul(A, B), np.matmul(A, B))
    for _ in range(5):
        np.testing.assert_array_equal(lcma.matmul(A, B), np.matmul(A, B))
    assert not learner._jobs


def test_learning_that_fails_leaves_the_vendor_and_says_so_once(learner, said, monkeypatch):
    monkeypatch.setattr(CompileProcess, "candidates", fails(RuntimeError("no compiler")))
    monkeypatch.setattr(trials_lesson, "SHORT", 0.0)  # for products so small nothing is compiled
    assert multiply_until(lambda lesson: not lesson.trial.open).trial.leader < 2
    assert said == ["learning of faster products failed: RuntimeError: no compiler"]


@pytest.mark.usefixtures("one_thread")
def test_at_the_end_threads_stop_and_decisions_are_stored(learner, timed_by_table, monkeypatch):
    timed_by_table({"vendor": 4e-3, "scheme": 3e-3})
    monkeypatch.setattr(learner, "_decided", lambda lesson: None)  # the thread has not come to it yet
    lesson = multiply_until(decided)
    learner._jobs.append(partial(learner._keep, lesson))
    threads = list(learner._threads)
    learner.end()
    assert len(threads) == 2
    assert not any(thread.is_alive() for thread in threads)
    assert len(wisdom.stored_wisdom(profile_for().id).records) == 1
    assert error(lcma.matmul(A, B)) < 1e-5


def test_new_classes_are_bounded(learner, monkeypatch):
    monkeypatch.setattr(learning, "MOST_CLASSES", 5)
    monkeypatch.setattr(learning, "MOST_JOBS", 3)
    monkeypatch.setattr(learner, "_start", lambda: None)
    for size in range(50):
        assert learner.executor(Request(700 + size, 700, 700), (Request(700 + size, 700, 700), 2), wait=False) is None
    assert len(learner._jobs) == len(learner._lessons) == 3
    learner._jobs.clear()
    for size in range(4):
        learner.executor(Request(600 + size, 700, 700), (Request(600 + size, 700, 700), 2), wait=False)
    assert len(learner._lessons) == 5


def test_a_registered_strategy_is_a_contender(learner, registered, monkeypatch):
    monkeypatch.setattr(CompileProcess, "candidates", lambda self, *_, **__: iter(()))
    runs = []
    registered(Plugin(lambda a, b, out=None: (runs.append(1), np.matmul(a, b, out=out))[1]))
    multiply_until(lambda lesson: len(runs) > 1)


@pytest.mark.usefixtures("one_thread")
def test_a_home_that_cannot_be_written_costs_one_warning(learner, timed_by_table, said, monkeypatch):
    timed_by_table({"vendor": 3e-3, "scheme": 4e-3})
    monkeypatch.setattr(wisdom, "keep_record", fails(OSError("read-only file system")))
    multiply_until(decided)
    other = A[:, :120].copy(), B[:120].copy()
    for _ in range(300):
        lcma.matmul(*other)
        if said:
            break
        time.sleep(0.005)
    assert len(said) == 1
    assert "read-only file system" in said[0]
    assert "set LCMA_HOME" in said[0]


def test_threads_that_multiply_at_once_get_right_products(learner, timed_by_table):
    timed_by_table({"vendor": 4e-3, "scheme": 3e-3})
    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(lambda _: error(lcma.matmul(A, B)), range(48))) < 1e-5


def test_a_forked_child_multiplies_and_learns_anew(learner, timed_by_table, in_a_child):
    timed_by_table({"vendor": 4e-3, "scheme": 3e-3})
    multiply_until(lambda lesson: True)
    with plan_cache._lock:  # as another thread may hold it
        assert in_a_child(lambda: error(lcma.matmul(A, B)) < 1e-5 and learning.learner._threads)


SCRIPT = """
import json, sys, time
import numpy as np, lcma
from lcma.kernels import compile_process, learning
from lcma.kernels.planning.trials import trial
compile_process.NICENESS = 0  # beside other tests it would wait for them
trial.MORE_PART = 1.0  # calls need not pay for compilation first
rng = np.random.default_rng(0)
a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((1500, 1520), (1520, 1510)))
began, lesson = time.perf_counter(), None
while time.perf_counter() - began < 300:
    c = lcma.matmul(a, b)
    time.sleep(0.02 if lesson and len(lesson.plans) > 1 else 0.3)  # for the process that compiles
    lesson = next((one for one in learning.learner._lessons.values() if one), None)
    if lesson and lesson.trial.decided and lesson.trial.median:
        break
print(json.dumps([len(lesson.plans), lesson.trial.decided, float(abs(c - a @ b).max())]))
"""


@pytest.mark.slow
def test_a_fresh_process_decides_by_itself(warm_home, new_process):
    said = new_process(SCRIPT, LCMA_LEARN="1", PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    contenders, settled, error = json.loads(said)
    assert contenders > 1
    assert settled
    assert error < 1e-2


LARGE = 656, 648, 664


def test_the_process_stands_still_while_something_is_timed():
    process = CompileProcess()
    process._process = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process.stopped():
        assert os.WIFSTOPPED(os.waitpid(process._process.pid, os.WUNTRACED)[1])
    assert os.WIFCONTINUED(os.waitpid(process._process.pid, os.WCONTINUED)[1])
    process.close()
    with process.stopped():  # and where there is none, nothing happens
        pass


@pytest.fixture
def process(settled_home):
    """A process of compilers, which ends with the test."""
    process = CompileProcess()
    yield process
    process.close()


def test_the_process_itself_ends_and_is_started_again(process):
    machine = machine_for(Request(*LARGE))
    first = next(iter(process.candidates(Request(*LARGE), machine)))
    assert first[0][1] == "scheme"
    assert first[1] > 0
    process._process.kill()
    process._process.wait()
    assert list(process.candidates(Request(*LARGE), machine)) == []
    assert next(iter(process.candidates(Request(*LARGE), machine)))[0] == first[0]


def test_a_process_that_hangs_is_ended(process, monkeypatch):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    monkeypatch.setattr(compile_process, "LONGEST_SILENCE", 0.2)
    monkeypatch.setattr(compile_process, "_started", lambda: subprocess.Popen(["sleep", "60"], **pipes))
    began = time.monotonic()
    assert list(process.candidates(Request(*LARGE), machine_for(Request(*LARGE)))) == []
    assert time.monotonic() - began < 30
    assert process._process is None


def test_the_process_finds_candidates_of_products_by_factors(process):
    structure = KroneckerSparse.of(Pattern(1, 96, 48, 5))
    request = factored_request(structure, 1024)
    assert pickle.loads(pickle.dumps(request)).structures[1] is request.structures[1]
    found = next(iter(process.candidates(request, machine_for(request))))
    assert found[0][:2] == ("structured", "slabs")

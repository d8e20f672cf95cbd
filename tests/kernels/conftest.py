"""Classical schemes, random matrices, and what a product of blocks must be."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from lcma.kernels import Executor, Machine, Plan, Pool, Profile, learning, register_strategy, unregister_strategy
from lcma.kernels.compile_process import CompileProcess
from lcma.kernels.cpu import machine as cpu_machine_module
from lcma.kernels.cpu.machine import cpu_machine, profile_for
from lcma.kernels.dense.pool import OrientedScheme, SchemePool
from lcma.kernels.planning.cache import plan_cache
from lcma.kernels.planning.profile import GemmRate
from lcma.kernels.planning.trials.lesson import Lesson
from lcma.schemes_db import Q, Scheme, Target, parse_target
from lcma.schemes_db.algebra import naive
from lcma.schemes_db.resolve import resolve

from .cases import present


def pytest_ignore_collect(collection_path):
    """Leave out the files that import torch where there is none."""
    if collection_path.suffix != ".py" or find_spec("torch"):
        return None
    return bool(re.search("^(import|from) torch", collection_path.read_text(encoding="utf-8"), re.M)) or None


@pytest.fixture(autouse=True)
def _nothing_is_measured(flat_rates):
    """Plans rest on the same figures everywhere."""


@pytest.fixture
def run_checks(request):
    """run_checks(file, **environment): the checks of a file beside the test's, in a process of their own."""
    folder = request.path.parent

    def run(name: str, **environment: str) -> None:
        command = [sys.executable, "-m", "pytest", str(folder / name), "-q", "-x", "-p", "no:cacheprovider"]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=280)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]

    return run


@pytest.fixture
def new_process():
    """new_process(code, *arguments, **environment): what a process of its own prints, which warns of nothing."""

    def run(code: str, *arguments: str, **environment: str) -> str:
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=330)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


@pytest.fixture
def classical():
    """classical(target, scale=1): a product for every nonzero of the target; U times `scale`, W over it."""

    def of(target: Target | str, scale: int = 1) -> Scheme:
        scheme = naive(parse_target(target) if isinstance(target, str) else target)
        if scale == 1:
            return scheme
        u, v, w = (factor.dense for factor in scheme.factors)
        return Scheme.from_arrays(scheme.target, scale * u, v, w, Q, denominators=(1, 1, scale))

    return of


@pytest.fixture
def machine_of():
    """machine_of(profile, threads=1, **facts): this machine with another profile, no wisdom, and other facts."""

    def of(profile: Profile, threads: int = 1, **facts: Any) -> Machine:
        return replace(cpu_machine(profile=profile, threads=threads), **{"wisdom": None, **facts})

    return of


@pytest.fixture
def flat(strassen, machine_of) -> Machine:
    """This machine on one thread with 100 Gflop/s and 50 GB/s at every size, and Strassen's scheme alone."""
    rates = (GemmRate("float32", 64, 64, 64, 1e11),)
    return machine_of(Profile("flat", "test", (), rates, 5e10, 5e10, add_rate=1e12), schemes=SchemePool.of([strassen]))


@pytest.fixture
def build_with():
    """build_with(plan, pool): the plan's executor, which takes its workspace from this pool."""

    def build(plan: Plan, pool: Pool) -> Executor:
        return replace(plan, machine=replace(plan.machine, pool=pool)).build()

    return build


@pytest.fixture
def draw():
    """draw(shape, dtype="float64"): standard normal numbers, or small integers; others in every call of a test."""
    of_test = np.random.default_rng(0)

    def drawn(shape: tuple[int, ...], dtype: str = "float64", rng: np.random.Generator = of_test) -> np.ndarray:
        if dtype.startswith("int"):
            return rng.integers(-1000, 1000, shape).astype(dtype)
        if dtype.startswith("complex"):
            return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
        return rng.standard_normal(shape).astype(dtype)

    return drawn


@pytest.fixture
def poisoned():
    """poisoned(target, a, b): the operands with NaN (int64: a large number) in all that the target calls absent."""

    def spoil(target: Target, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bad = np.int64(1 << 40) if a.dtype == np.int64 else np.nan
        pairs = ((target.a, a), (target.b, b))
        return tuple(np.where(present(kinds, x.shape), x, bad).astype(x.dtype) for kinds, x in pairs)

    return spoil


@pytest.fixture
def holds():
    """holds(actual, target, a, b): that `actual` is the target's product of a and b, within rounding."""

    def check(actual: np.ndarray, target: Target, a: np.ndarray, b: np.ndarray) -> None:
        kept = [np.where(present(kinds, x.shape[-2:]), x, 0) for kinds, x in ((target.a, a), (target.b, b))]
        expected = np.where(present(target.c, actual.shape[-2:]), kept[0] @ kept[1], 0).astype(a.dtype)
        assert actual.shape == expected.shape
        assert actual.dtype == expected.dtype
        if a.dtype.kind == "i":
            np.testing.assert_array_equal(actual, expected)
        else:
            error = np.abs(actual - expected).max(initial=0)
            assert error <= 500 * np.finfo(a.dtype).eps * max(1, np.abs(expected).max(initial=0))

    return check


@pytest.fixture
def no_rates(monkeypatch):
    """Nothing is known of this machine: plans are ranked by arithmetic and bytes."""
    monkeypatch.setattr(cpu_machine_module, "profile_for", lambda dtype: Profile("unmeasured", "none"))
    plan_cache.clear()


@pytest.fixture
def every_layer_gains(monkeypatch):
    """`accelerate_` predicts a gain for every layer."""
    from lcma.kernels.torch import acceleration

    monkeypatch.setattr(acceleration._Planner, "_decided", lambda self, requests: ("2x2x2:7", 1.2, None))


@pytest.fixture
def registered():
    """registered(strategy): it is known until the end of the test."""
    known = []

    def register(strategy):
        register_strategy(strategy)
        known.append(strategy)
        return strategy

    yield register
    for strategy in known:
        unregister_strategy(strategy)


@pytest.fixture
def timed_by_table(monkeypatch):
    """timed_by_table(seconds): contenders' calls take the seconds of a table, by strategy."""
    end = Lesson.end

    def play(seconds):
        def read(lesson, contender, _, counts):
            end(lesson, contender, seconds[lesson.plans[contender].candidate.strategy], counts)

        monkeypatch.setattr(Lesson, "end", read)

    return play


@pytest.fixture(scope="session")
def _settled_folder(tmp_path_factory, link_compiled):
    return link_compiled(tmp_path_factory.mktemp("home"))


@pytest.fixture
def settled_home(_settled_folder, monkeypatch):
    """A home that tests share, with its catalogue and compiled code, but without profiles and wisdom."""
    monkeypatch.setenv("LCMA_HOME", str(_settled_folder))
    shutil.rmtree(_settled_folder / "profiles", ignore_errors=True)
    return _settled_folder


@pytest.fixture
def own_learner(monkeypatch):
    """The learner of the process is a new one; rates are estimated, and one scheme, Strassen's, is a contender."""
    scheme = OrientedScheme.of(resolve("strassen")[0], "mkn").name
    keys = [("dense", "scheme", scheme, (("method", "batched"),))]
    monkeypatch.setenv("LCMA_LEARN", "1")
    monkeypatch.setattr(cpu_machine_module, "profile_for", profile_for)  # not that of the other tests
    monkeypatch.setattr(CompileProcess, "candidates", lambda self, *_, **__: iter([(key, 0.0) for key in keys]))
    found = learning.Learner()
    monkeypatch.setattr(learning, "learner", found)
    plan_cache.clear()
    yield found
    found.end()  # what is stored late would be the wisdom of the next test's home
    plan_cache.clear()


@pytest.fixture
def wait_for():
    """wait_for(condition): its value, once that is true."""

    def wait(condition, seconds=120.0):
        for _ in range(int(seconds / 0.02)):
            if found := condition():
                return found
            time.sleep(0.02)
        raise AssertionError("not within the time")

    return wait


@pytest.fixture
def in_a_child():
    """in_a_child(check): whether a forked child finds check() true."""

    def holds(check):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 warns of forks beside threads
            child = os.fork()
        if child == 0:
            os._exit(0 if check() else 1)
        return os.waitpid(child, 0)[1] == 0

    return holds


@pytest.fixture
def switched_off(monkeypatch, tmp_path):
    """switched_off(reason): a context in which nothing may be tried, by "the environment" and the like."""

    @contextlib.contextmanager
    def of(reason):
        torch = pytest.importorskip("torch")
        if reason == "the environment":
            monkeypatch.setenv("LCMA_LEARN", "0")
        if reason == "a process group":
            store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
            torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        torch.use_deterministic_algorithms(reason == "deterministic")
        try:
            with learning.paused() if reason == "paused" else contextlib.nullcontext():
                yield
        finally:
            monkeypatch.setenv("LCMA_LEARN", "1")
            torch.use_deterministic_algorithms(False)
            if reason == "a process group":
                torch.distributed.destroy_process_group()

    return of

"""Plans when memory is short: bytes that are not there, limits of the process, allocations that fail."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from lcma.errors import PlanError
from lcma.kernels import Pool, Request, matmul, plan, plan_for
from lcma.kernels.api import _executors
from lcma.kernels.cpu import memory, workspace
from lcma.kernels.dense.auto import decide
from lcma.kernels.dense.pool import Choices
from lcma.kernels.planning.profile import GemmRate, Profile

FLAT = Profile("flat", "test", (), (GemmRate("float32", 64, 64, 64, 1e11),), 5e10, 5e10, add_rate=1e12)
SIZE = 2048


@pytest.fixture
def scarce(monkeypatch):
    """scarce(nbytes): so many bytes are free."""

    def leave(nbytes: int) -> None:
        monkeypatch.setattr(memory, "_available", lambda: float(nbytes))
        monkeypatch.setattr(memory, "NOTICED", 1)

    return leave


def test_what_is_free_is_asked_of_the_system():
    assert 1 << 20 < memory._available() < 1 << 50
    assert memory.shortage(memory.NOTICED - 1) is None
    assert "bytes are free" not in (memory.shortage(1 << 60) or "")
    assert "are free" in memory.shortage(1 << 60)


def test_auto_takes_a_leaner_plan_and_says_why(strassen, scarce):
    among = Choices.of([strassen])
    plenty = decide(Request(SIZE, SIZE, SIZE), FLAT, 1, among)
    scarce(plenty.plan.workspace // 3)
    lean = decide(Request(SIZE, SIZE, SIZE), FLAT, 1, among)
    assert lean.chosen.chain
    assert lean.plan.workspace <= plenty.plan.workspace // 3
    assert lean.plan.request.max_workspace is None
    assert any("bytes of workspace, and" in reason and "are free" in reason for _, reason in lean.plan.refused)
    scarce(0)
    assert decide(Request(SIZE, SIZE, SIZE), FLAT, 1, among).plan.candidate.strategy == "gemm"


def test_auto_takes_no_more_than_stays_at_hand_between_calls(strassen, monkeypatch):
    among = Choices.of([strassen])
    plenty = decide(Request(SIZE, SIZE, SIZE), FLAT, 1, among)
    monkeypatch.setattr(workspace.shared_pool, "keep", plenty.plan.workspace // 3)
    lean = decide(Request(SIZE, SIZE, SIZE), FLAT, 1, among)
    assert lean.plan.workspace <= plenty.plan.workspace // 3
    assert any("kept between calls" in reason for _, reason in lean.plan.refused)


def test_a_named_scheme_takes_the_way_that_fits(strassen, scarce):
    request = Request(256, 256, 256)
    free = plan(request, strassen, 2)
    scarce(free.workspace - 1)
    lean = plan(request, strassen, 2)
    assert lean.workspace < free.workspace
    assert any("are free" in reason for _, reason in lean.refused)
    scarce(0)
    with pytest.raises(PlanError, match="are free"):
        plan(request, strassen, 2)


def test_an_allocation_that_fails_leads_to_a_leaner_plan(strassen, monkeypatch):
    a, b = np.random.default_rng(0).standard_normal((2, 251, 251))
    request = Request.of(a, b)
    _executors.clear()
    first = plan_for(request, strassen, 1)
    most = first.workspace - 1
    acquire = Pool._acquire

    def limited(pool, size):
        if size > most:
            raise MemoryError
        return acquire(pool, size)

    monkeypatch.setattr(Pool, "_acquire", limited)
    np.testing.assert_allclose(matmul(a, b, strassen, 1), a @ b, atol=1e-10)
    lean = plan_for(request, strassen, 1)
    assert lean.workspace <= most
    assert lean.refused[0] == (
        str(first.candidate),
        f"out of memory: its {first.workspace} bytes of workspace could not be had",
    )
    in_place = a.copy()
    np.testing.assert_allclose(matmul(in_place, b, strassen, 1, out=in_place), a @ b, atol=1e-10)
    most = 0
    with pytest.raises(PlanError, match="workspace"):
        matmul(a, b, strassen, 1)
    _executors.clear()


@pytest.mark.parametrize("share", [0, pytest.param(1 / 6, marks=pytest.mark.slow), 1 / 3, 1, 3])
def test_bytes_of_the_allocator_keep_to_the_limit(strassen, monkeypatch, share):
    from lcma.kernels.dense import options

    monkeypatch.setattr(options, "LEAST_BLOCK", 64 if share > 1 / 6 else 16)  # one level, or all that there are
    quick = Profile("quick", "test", (), (GemmRate("float64", 64, 64, 64, 1e5),), 5e10, 5e10, add_rate=1e12)
    a, b = np.random.default_rng(1).standard_normal((2, 192, 192))
    allowed = int(share * 3 * a.nbytes)
    found = decide(Request.of(a, b, max_workspace=allowed), quick, 1, Choices.of([strassen]))
    pool = Pool(poison=True)
    result = found.plan.build(pool).run(a, b)
    np.testing.assert_allclose(result, a @ b, atol=1e-10)
    assert pool.high_water == found.plan.workspace <= allowed
    assert (found.plan.candidate.strategy == "gemm") == (share == 0)


LIMITED = """
import resource
import numpy as np
from lcma.kernels import matmul, plan_for, Request, executor_for
from lcma.kernels.cpu.memory import _field
a = np.random.default_rng(0).standard_normal((1500, 1500)).astype(np.float32)
wanted = a @ a  # OpenBLAS takes its buffers now: without them it ends the process
small = a[:40, :40].copy()
matmul(small, small, "strassen", 2), matmul(small, small, ["strassen", "strassen"], max_workspace=20000)
free = plan_for(Request.of(a, a), "strassen", 2).workspace
lean = plan_for(Request.of(a, a, max_workspace=free // 2), "strassen", 2).workspace
out = np.empty_like(a)
limit = int(_field("/proc/self/status", "VmSize:")) + (free + lean) // 2
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
got = matmul(a, a, "strassen", 2, out=out)
plan = plan_for(Request.of(a, a, out), "strassen", 2)
assert plan.workspace < free, (plan, free)
assert "out of memory" in plan.refused[0][1], plan.refused
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
assert np.abs(got - wanted).max() < 1e-2
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_a_process_at_its_limit_goes_on(home):
    environment = {**os.environ, "LCMA_HOME": str(home), "LCMA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", LIMITED], check=True, env=environment)


def test_an_idle_buffer_is_given_back_before_a_new_try():
    with workspace.shared_pool.take(1000):
        pass
    workspace.shared_pool.trim()
    assert not workspace.shared_pool._idle

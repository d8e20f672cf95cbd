"""Plans when memory is short: bytes that are not there, limits of the process, allocations that fail."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from lcma.kernels import Pool, Request, decision_for, executor_for, matmul, plan_for
from lcma.kernels.cpu import memory
from lcma.kernels.dense import chains
from lcma.kernels.dense.pool import SchemePool
from lcma.kernels.planning import limits
from lcma.kernels.planning.cache import plan_cache
from lcma.kernels.planning.profile import GemmRate, Profile

from ..refusal import refuses


@pytest.fixture
def scarce(monkeypatch):
    """scarce(nbytes): so many bytes are free."""

    def leave(nbytes: int) -> None:
        monkeypatch.setattr(memory, "_available", lambda: float(nbytes))
        monkeypatch.setattr(limits, "CHECKED", 1)

    return leave


def test_what_is_free_is_asked_of_the_system():
    assert 1 << 20 < memory._available() < 1 << 50
    assert "are free" in limits.memory_shortage(1 << 60, memory.free_bytes)


@pytest.fixture
def decide(flat):
    """decide(**facts): how a large product goes among Strassen's scheme alone, on this machine with other facts."""
    return lambda **facts: decision_for(Request(2048, 2048, 2048), machine=replace(flat, **facts))


def test_auto_takes_a_leaner_plan_and_says_why(decide, scarce):
    plenty = decide()
    scarce(plenty.plan.workspace // 3)
    lean = decide()
    assert lean.plan.candidate.strategy == "scheme"
    assert lean.plan.workspace <= plenty.plan.workspace // 3
    assert lean.plan.request.max_workspace is None
    assert any("bytes of workspace, and" in reason and "are free" in reason for _, reason in lean.refused)
    scarce(0)
    assert decide().plan.candidate.strategy == "vendor"


def test_auto_takes_no_more_than_stays_at_hand_between_calls(decide):
    plenty = decide()
    lean = decide(kept_bytes=plenty.plan.workspace // 3)
    assert lean.plan.workspace <= plenty.plan.workspace // 3
    assert any("kept between calls" in reason for _, reason in lean.refused)


def test_a_named_scheme_runs_by_the_method_that_fits(strassen, scarce, no_rates):
    request = Request(256, 256, 256)
    free = decision_for(request, strassen, 2).plan
    scarce(free.workspace - 1)
    lean = decision_for(request, strassen, 2)
    assert lean.plan.workspace < free.workspace
    assert any("are free" in reason for _, reason in lean.refused)
    scarce(0)
    refuses("are free", decision_for, request, strassen, 2)


def test_an_allocation_that_fails_leads_to_a_leaner_plan(strassen, no_rates, monkeypatch):
    a, b = np.random.default_rng(0).standard_normal((2, 251, 251))
    request = Request.of(a, b)
    plan_cache.clear()
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
    assert lean.request == request
    assert lean.candidate != first.candidate
    assert lean.workspace == executor_for(request, strassen, 1).workspace <= most
    in_place = a.copy()
    np.testing.assert_allclose(matmul(in_place, b, strassen, 1, out=in_place), a @ b, atol=1e-10)
    most = 0
    refuses("workspace", matmul, a, b, strassen, 1)
    plan_cache.clear()


@pytest.mark.parametrize("share", [0, pytest.param(1 / 6, marks=pytest.mark.slow), 1 / 3, 1, 3])
def test_bytes_of_the_allocator_keep_to_the_limit(strassen, machine_of, build_with, monkeypatch, share):
    monkeypatch.setattr(chains, "LEAST_BLOCK", 64 if share > 1 / 6 else 16)  # one level, or all that there are
    quick = Profile("quick", "test", (), (GemmRate("float64", 64, 64, 64, 1e5),), 5e10, 5e10, add_rate=1e12)
    a, b = np.random.default_rng(1).standard_normal((2, 192, 192))
    allowed = int(share * 3 * a.nbytes)
    machine = machine_of(quick, schemes=SchemePool.of([strassen]))
    found = decision_for(Request.of(a, b, max_workspace=allowed), machine=machine)
    pool = Pool(poison=True)
    result = build_with(found.plan, pool).run(a, b)
    np.testing.assert_allclose(result, a @ b, atol=1e-10)
    assert pool.high_water == found.plan.workspace <= allowed
    assert (found.plan.candidate.strategy == "vendor") == (share == 0)


LIMITED = """
import resource
import numpy as np
from lcma.kernels import matmul, plan_for, Request
from lcma.kernels.cpu.memory import _field
a = np.random.default_rng(0).standard_normal((1500, 1500)).astype(np.float32)
wanted = a @ a  # OpenBLAS takes its buffers now: without them it ends the process
small = a[:40, :40].copy()
matmul(small, small, "strassen", 2), matmul(small, small, ["strassen", "strassen"], max_workspace=20000)
free = plan_for(Request.of(a, a), "strassen", 2).workspace
lean = plan_for(Request.of(a, a, max_workspace=free // 2), "strassen", 2).workspace
out = np.empty_like(a)
limit = int(_field("/proc/self/status", b"VmSize:")) + (free + lean) // 2
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
got = matmul(a, a, "strassen", 2, out=out)
plan = plan_for(Request.of(a, a, out), "strassen", 2)
assert plan.workspace < free, (plan, free)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
assert np.abs(got - wanted).max() < 1e-2
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_a_process_at_its_memory_limit_continues(home):
    environment = {**os.environ, "LCMA_HOME": str(home), "LCMA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", LIMITED], check=True, env=environment)

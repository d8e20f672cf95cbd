"""Plans when memory is short, where nothing can be written, and files for the next process."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import lcma
from lcma.kernels import Pool, Request, decision_for, executor_for, matmul, plan_for
from lcma.kernels.codegen import programs
from lcma.kernels.codegen.maps import maps_of
from lcma.kernels.codegen.programs import key_of, program_for, stored_program
from lcma.kernels.cpu import bench, machine
from lcma.kernels.dense import chains, pool
from lcma.kernels.dense.arrangements import levels_of
from lcma.kernels.dense.pool import SchemePool, scheme_pool
from lcma.kernels.dense.scheme_costs import costs_of
from lcma.kernels.planning import limits
from lcma.kernels.planning.cache import plan_cache
from lcma.kernels.planning.profile import GemmRate, Profile
from lcma.schemes_db import Z2
from lcma.schemes_db.shipped import kept_program, shipped

from ..refusal import refuses


@pytest.fixture
def scarce(monkeypatch):
    """scarce(nbytes): so many bytes are free."""

    def leave(nbytes: int) -> None:
        monkeypatch.setattr(machine, "_available", lambda: float(nbytes))
        monkeypatch.setattr(limits, "CHECKED", 1)

    return leave


def test_what_is_free_is_asked_of_the_system():
    assert 1 << 20 < machine._available() < 1 << 50
    assert "are free" in limits.memory_shortage(1 << 60, machine.free_bytes)


@pytest.fixture
def decide(flat):
    """decide(**facts): how a large product goes among Strassen's scheme alone, on this machine with other facts."""
    return lambda **facts: decision_for(Request(2048, 2048, 2048), machine=replace(flat, **facts))


def test_auto_takes_a_leaner_plan_and_says_why(decide, scarce):
    plenty = decide()
    lean = decide(kept_bytes=plenty.plan.workspace // 3)
    assert lean.plan.workspace <= plenty.plan.workspace // 3
    assert any("kept between calls" in reason for _, reason in lean.refused)
    scarce(plenty.plan.workspace // 3)
    lean = decide()
    assert lean.plan.candidate.strategy == "scheme"
    assert lean.plan.workspace <= plenty.plan.workspace // 3
    assert lean.plan.request.max_workspace is None
    assert any("bytes of workspace, and" in reason and "are free" in reason for _, reason in lean.refused)
    scarce(0)
    assert decide().plan.candidate.strategy == "vendor"


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
from lcma.kernels.cpu.machine import _field
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
def test_a_process_at_its_memory_limit_continues(home, new_process):
    new_process(LIMITED, LCMA_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


PRODUCTS = """
import sys
import numpy as np
import lcma
from lcma.kernels import Profile, api
from lcma.kernels.cpu import machine
from lcma.kernels.planning.profile import GemmRate

rates = (GemmRate("float64", 64, 64, 64, 1e8),)  # so slow that a scheme is chosen
machine.profile_for = lambda dtype: Profile("slow", "test", (), rates, 5e10, 5e10, add_rate=1e12)
api.SMALL = 0
if "full" in sys.argv:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # every write fails
a = np.random.default_rng(0).standard_normal((256, 256))
for scheme in ("strassen", "auto"):
    error = np.abs(lcma.matmul(a, a, scheme) - a @ a).max()
    assert error < 1e-10, error
assert lcma.kernels.plan_for(lcma.kernels.Request.of(a, a)).candidate.source is not None
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of file sizes are Linux's")
@pytest.mark.parametrize(
    "case",
    ["full", *(pytest.param(x, marks=pytest.mark.slow) for x in ("full, and no temporary directory", "no folder"))],
)
def test_products_by_schemes_go_on(empty_home, new_process, case):
    environment = {"PYTHONWARNINGS": "error"}
    if "temporary" in case:
        environment["TMPDIR"] = str(empty_home / "none")
    if case == "no folder":
        empty_home.write_text("")
        environment["LCMA_HOME"] = str(empty_home / "home")
    new_process(PRODUCTS, *case.replace(",", "").split(), **environment)


@pytest.fixture
def forgetful(home, monkeypatch):
    """A home of its own, and forget(): as a new process, that has read nothing yet."""

    def forget() -> None:
        monkeypatch.setattr(programs, "_known", {})
        pool._stored.cache_clear()

    forget()
    yield forget
    pool._stored.cache_clear()


def test_programs_are_stored_and_proven_when_they_are_read(forgetful, strassen, monkeypatch):
    scheme = shipped("3x3x3-r23-additions").scheme
    (level,) = levels_of(scheme, 1)
    assert level[0] == kept_program("3x3x3-r23-additions")
    assert level[0].additions == 55 < lcma.program_of(scheme).additions
    # Its name alone gives no other scheme that program.
    other = shipped("3x3x3-r23").scheme.replace(name="3x3x3-r23-additions")
    assert program_for(other) == lcma.program_of(other)
    made = program_for(strassen)
    path = programs._path(key_of(strassen))
    forgetful()
    with monkeypatch.context() as patch:
        patch.setattr(programs, "_made", None)
        assert program_for(strassen) == made
    assert maps_of(made) is maps_of(made.nested({}))
    text = path.read_text()
    inner = text.replace('"inner":{}', f'"inner":{{"full":{text}}}')
    half = text.replace('"full"', '"half-out"', 1)
    deep = "[" * 100_000 + "]" * 100_000
    levels = text.removesuffix("{}}") + '{"full":'
    deep_levels = levels * 300 + text + "}}" * 300
    damages = ("", "[]", text[:-9], text.replace("[[1,", "[[-1,", 1), inner, half, deep, deep_levels)
    assert inner != text != half
    for damage in damages:
        forgetful()
        path.write_text(damage)
        assert stored_program(key_of(strassen), strassen.digest) is None
        plan_cache.clear()
        np.testing.assert_allclose(lcma.matmul(np.eye(6), np.ones((6, 6)), strassen), np.ones((6, 6)))
    assert program_for(strassen) == made
    assert path.read_text() == text


def test_keys_tell_apart_what_digests_do_not_and_two_levels_cost_what_their_product_does(classical, strassen):
    plain, scaled = classical("1x1x2"), classical("1x1x2", scale=3)
    assert plain.digest == scaled.digest
    assert len({key_of(scheme) for scheme in (plain, scaled, strassen, strassen.replace(ring=Z2))}) == 4
    among = SchemePool.of([strassen])
    both = next(entry for entry in among.entries if entry.is_flattened)
    np.testing.assert_array_equal(among.costs.packed()[:, -1], costs_of(both.scheme).packed())


def test_the_table_of_schemes_serves_the_next_process_until_it_is_damaged_or_the_catalogue_changed(
    forgetful, monkeypatch
):
    first = scheme_pool()
    forgetful()
    with monkeypatch.context() as patch:
        patch.setattr(pool, "_from_catalogue", None)
        second = scheme_pool()
    assert second == replace(first, costs=second.costs)
    np.testing.assert_array_equal(second.costs.packed(), first.costs.packed())
    ours, theirs = (next(entry for entry in one.entries if entry.label == "3x2x2:11") for one in (first, second))
    assert theirs.factors[0].held is None
    assert theirs.scheme == ours.scheme
    assert theirs.program == lcma.program_of(ours.scheme)
    flat = next(entry for entry in second.entries if entry.is_flattened)
    assert flat.program.rank == flat.scheme.rank
    stamp = pool.catalogue_stamp()
    turned = lcma.rotate(shipped("2x2x3-r11").scheme)
    with lcma.Catalog.open() as catalog:
        catalog.add(lcma.tensor(turned, turned), lcma.certify(lcma.tensor(turned, turned)))
    assert pool.catalogue_stamp() != stamp
    assert len(scheme_pool().entries) > len(first.entries)
    path = pool._path(pool.catalogue_stamp())
    good = json.loads(path.read_text())
    changes = {"costs": good["costs"][:-1]}, {"entries": 7}, {"dominated": float("inf")}
    for damage in ("{", "[]", *(json.dumps({**good, **change}) for change in changes)):
        path.write_text(damage)
        assert pool.stored_pool(pool.catalogue_stamp()) is None
    forgetful()
    assert len(scheme_pool().entries) == len(good["entries"])
    assert json.loads(path.read_text()) == good


def test_others_are_seen(monkeypatch):
    busy = iter([10.0, 10.0 + 0.5 * 2.0 * (bench.os.cpu_count() or 1)])
    monkeypatch.setattr(bench, "_busy_seconds", lambda: next(busy))
    clock = iter([0.0, 2.0])
    monkeypatch.setattr(bench.time, "perf_counter", lambda: next(clock))
    assert bench.CpuLoadMonitor().share() == pytest.approx(0.5, abs=0.02)

"""Planning: candidates, choices by a profile, limits, reasons, hashes, and the workspace that is promised."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

import lcma
from lcma.kernels import Pool, Profile, Request, api, decision_for, executor_for, finite, matmul, plan_for
from lcma.kernels.codegen.maps import LinearMap, maps_of
from lcma.kernels.codegen.order import Keep, Take, schedule
from lcma.kernels.codegen.rows import rows_kernel
from lcma.kernels.cpu.cost_model import CALL_SECONDS, LEVEL_SECONDS
from lcma.kernels.cpu.machine import cpu_machine
from lcma.kernels.cpu.mapping import blocks_at
from lcma.kernels.dense.arrangements import arrangements, levels_of
from lcma.kernels.dense.chains import smallest
from lcma.kernels.planning.cache import plan_cache
from lcma.kernels.planning.profile import GemmRate, find_profile, published
from lcma.kernels.precision import FORMER_NAMES, NAMES, Arithmetic, arithmetic_of, fields_of
from lcma.kernels.products import arrays
from lcma.kernels.products.arrays import IS_NUMPYS, key_of
from lcma.schemes_db.flatten import flatten
from lcma.workbench.bench.workloads import LAYERS, sample

from ..refusal import refuses


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("strategy", ["scheme:batched", "scheme:tasks", "scheme:loop"])
@pytest.mark.parametrize("kind", ["plain", "steps", "aliased", "batch"])
def test_the_workspace_is_what_was_promised_and_all_of_it_is_written(
    strassen, draw, holds, build_with, monkeypatch, levels, strategy, kind
):
    monkeypatch.setenv("LCMA_NUM_THREADS", "3")
    a, b = draw((45, 46), "float64"), draw((46, 46), "float64")
    out = None
    if kind == "steps":
        a = np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2]
    if kind == "aliased":
        a = draw((46, 46), "float64")
        out = b
    if kind == "batch":
        a = draw((3, 45, 46), "float64")
    copies = a.copy(), b.copy()
    pool = Pool(poison=True)
    chosen = plan_for(Request.of(a, b, out), strassen, levels, strategy=strategy)
    executor = build_with(chosen, pool)
    result = executor.run(a, b, out)
    assert pool.high_water == executor.workspace == chosen.workspace
    for i in np.ndindex(result.shape[:-2]):
        holds(result[i], strassen.target, copies[0][i], copies[1])


def test_stages_add_up_and_have_seconds_of_a_measured_profile(strassen):
    none = cpu_machine(profile=Profile("unmeasured", "none"))
    chosen = plan_for(Request(64, 64, 64, "float64"), strassen, strategy="scheme:batched", machine=none)
    names = [stage.name for stage in chosen.stages]
    assert names == ["sums of A", "sums of B", "7 full products 32x32x32", "blocks of C"]
    assert chosen.stages[2].flops == 7 * 2 * 32**3
    # Two of the seven sums of each operand are blocks as they stand: 4 blocks read, 5 written.
    assert [stage.bytes // (32 * 32 * 8) for stage in chosen.stages] == [9, 9, 21, 11]
    assert chosen.stages[0].flops == 5 * 32 * 32
    assert chosen.seconds is None
    rates = (GemmRate("float32", 512, 512, 512, 1e9),)
    profile = Profile("mine", "test", gemm=rates, combine_rate=1e9, source="measured")
    machine = cpu_machine(profile=profile, threads=1)
    assert plan_for(Request(1000, 1000, 1000), strassen, 2, machine=machine).seconds > 0
    only = plan_for(Request(1000, 1000, 1000), strassen, 1, strategy="scheme:batched", machine=machine)
    assert only.seconds == sum(stage.seconds for stage in only.stages)
    # 500 x 500 is computed in 32 x 32 tiles of 16 x 16; a level and its seven calls cost the host's time.
    products, moved = 7 * 2 * 512 * 512 * 500, 4 * 500**2 * (9 + 9 + 11)
    assert only.seconds == pytest.approx((products + moved) / 1e9 + LEVEL_SECONDS + 7 * CALL_SECONDS)
    labels = [label for label, _ in arrangements(levels_of(strassen, 3))]
    assert labels == ["2x2x2:7 * 2x2x2:7 * 2x2x2:7", "2x2x2:7 * (2x2x2:7 2x2x2:7)", "(2x2x2:7 2x2x2:7) * 2x2x2:7"]
    unmeasured = cpu_machine(profile=Profile("unmeasured", "none"), threads=2)
    chosen = decision_for(Request(1000, 1000, 1000), strassen, 2, machine=unmeasured)
    assert str(chosen.plan.candidate) == "scheme (2x2x2:7 2x2x2:7), batched"
    beaten = dict(chosen.refused)
    outer, loop = "scheme 2x2x2:7 * 2x2x2:7, batched", "scheme (2x2x2:7 2x2x2:7), loop"
    assert {outer, loop} <= set(beaten)
    assert "flops" in beaten[outer]
    # The library's product has no levels, and other families' products are not this one: they are no candidates.
    assert not any("vendor" in name or "mask" in reason for name, reason in chosen.refused)


def test_limits(strassen):
    free = plan_for(Request(256, 256, 256), strassen, 2, strategy="scheme:batched")
    limited = Request(256, 256, 256, max_workspace=free.workspace - 1)
    tight = decision_for(limited, strassen, 2, strategy="scheme:batched")
    assert tight.plan.workspace < free.workspace
    assert any("bytes of workspace, more than" in reason for _, reason in tight.refused)
    assert plan_for(Request(256, 256, 256, "int64", max_error=1e-12), strassen)
    assert plan_for(Request(256, 256, 256, "float64", max_error=1e-12), strassen)
    refuses("max_error must be positive", Request, 1, 1, 1, max_error=float("nan"))


def test_a_plan_runs_its_own_request_only(strassen):
    executor = plan_for(Request(8, 8, 8, "float64"), strassen).build()
    refuses("plan again", executor.run, np.ones((8, 9)), np.ones((9, 8)))
    refuses("stored by", executor.run, np.ones((8, 8)).T[::-1], np.ones((8, 8)))
    same = Request(3, 1, 1, "int64")
    assert executor_for(same, strassen) is executor_for(same, strassen)


def test_equal_requests_have_equal_hashes_in_every_process(new_process):
    """Strings hash differently in every process: a hash that is kept must not travel."""
    there = "import pickle, sys, lcma; r = pickle.loads(bytes.fromhex(sys.argv[1])); " + (
        "print(hash(r) == hash(lcma.kernels.Request(3, 4, 5)) and {r: 1}[lcma.kernels.Request(3, 4, 5)])"
    )
    request = Request(3, 4, 5)
    assert hash(request) == hash(Request(3, 4, 5)) != hash(Request(3, 5, 4))
    assert new_process(there, pickle.dumps(request).hex()) == "1\n"


def test_a_pool_gives_buffers_back():
    pool = Pool(keep=1000)
    with pool.take(100) as first, pool.take(500) as second:
        assert first.array((4,), np.dtype("float64")).ctypes.data % 64 == 0
        second.array((3,), np.dtype("float32"))
        assert second.array((3,), np.dtype("float32")).ctypes.data % 64 == 0
    assert pool.high_water == 128 + 512
    with pool.take(2000):
        pass
    assert sum(map(len, pool._idle)) <= 1000
    pool.trim()
    assert not pool._idle


def test_a_plan_of_operands_runs_them():
    a, b = np.random.default_rng(0).standard_normal((2, 63, 63))
    plan = lcma.plan(a, b, "strassen", 1)
    assert plan.candidate.strategy == "scheme"
    out = np.empty_like(a)
    assert plan.run(a, b, out) is out
    np.testing.assert_allclose(out, a @ b, atol=1e-12)
    assert plan.executor is plan.executor
    torch = pytest.importorskip("torch")
    refuses(r"pass x\.numpy", lcma.plan, torch.ones(2, 2), torch.ones(2, 2))


@pytest.mark.parametrize(
    "arithmetic", [*NAMES, Arithmetic("float64"), Arithmetic("bfloat16")], ids=lambda one: one.name
)
def test_a_name_is_that_of_a_dtype_and_a_precision(arithmetic):
    assert arithmetic_of(arithmetic.name) == arithmetic
    request = Request(8, 8, 8, device="cuda", **fields_of(arithmetic.name))
    assert (request.arithmetic, request.dtype) == (arithmetic.name, arithmetic.dtype)
    assert (f" in {arithmetic.precision}" in str(request)) == (arithmetic.precision is not None)


def test_requests_of_different_precisions_differ_and_former_names_are_read():
    assert {arithmetic_of(former).name for former in FORMER_NAMES} == set(FORMER_NAMES.values())
    plain, rounded = (Request(8, 8, 8, device="cuda", precision=one) for one in (None, "tf32"))
    assert plain != rounded
    assert hash(plain) != hash(rounded)
    assert (plain.itemsize, plain.unit, rounded.itemsize, rounded.unit) == (4, 2.0**-24, 4, 2.0**-11)


@pytest.fixture
def decide(flat, machine_of):
    """decide(request, profile=flat): the decision among Strassen's scheme alone, on one thread."""

    def decided(request, profile=flat.profile):
        return decision_for(request, machine=machine_of(profile, schemes=flat.schemes))

    return decided


def test_decisions_have_reasons_and_their_proposals_an_order(decide):
    """What is chosen by sizes and limits: test_golden_plans.py."""
    large = decide(Request(4096, 4096, 4096))
    assert large.plan.candidate.strategy == "scheme"
    assert [one.bound for one in large.proposals] == sorted(one.bound for one in large.proposals)
    unknown, limited = Profile("none", "test"), Request(4096, 4096, 4096, max_error=2.5e-4)
    for found, reason in (
        (decide(Request(3, 4096, 4096)), "memory-bound (Eq. 8"),
        (decide(Request(4096, 4096, 4096), unknown), "lcma doctor --profile"),
        (decide(limited), "within these limits"),
    ):
        assert found.plan.candidate.strategy == "vendor"
        assert reason in found.reason


def test_published_machines_are_marked(decide):
    papers = {"nvidia-h20", "nvidia-a100-40gb", "intel-8255c", "amd-epyc-9k84", "arm-neoverse-v1"}
    assert papers | {"nvidia-h100", "nvidia-h200"} == set(published())
    assert all(one.source == "published" and one.notes for one in published().values())
    assert find_profile("nvidia-h20").bandwidth == 4.0e12
    found = decide(Request(8192, 8192, 8192), find_profile("amd-epyc-9k84"))
    assert found.plan.candidate.strategy == "scheme"
    refuses("not known; choose one of amd-epyc-9k84", find_profile, "no such machine")


def test_workloads_have_the_layers_of_the_models_and_infinities_are_reported():
    counts = {model: sum(layer.model == model for layer in LAYERS) for model in ("DeepSeek-R1", "Qwen3.5-397B")}
    assert counts == {"DeepSeek-R1": 11, "Qwen3.5-397B": 7}
    assert len(LAYERS) == 24
    taken = sample(24)
    assert len(taken) == 24
    assert len({layer for _, layer in taken}) > 12
    assert max(m for m, _ in taken) <= 8192
    assert finite(np.ones(3), np.ones((2, 2)))
    assert not finite(np.ones(3), np.array([np.inf]))


def test_small_products_are_numpys_own_and_such_plans_are_remembered(monkeypatch):
    a = np.random.default_rng(0).standard_normal((30, 40)).astype(np.float32)
    with monkeypatch.context() as patched:
        patched.setattr(arrays, "plan_and_executor", None)
        np.testing.assert_array_equal(matmul(a, a.T), a @ a.T)
        out = np.empty((30, 30), np.float32)
        assert matmul(a, a.T, out=out) is out
        refuses("inner sizes differ", matmul, a, a)
    monkeypatch.setattr(api, "SMALL", 0)
    monkeypatch.setattr(plan_cache, "_checked", math.inf)  # a first plan makes the catalogue, which is a change
    plan_cache.clear()
    a = np.random.default_rng(0).standard_normal((60, 40)).astype(np.float32)
    expected = a @ a.T
    np.testing.assert_array_equal(matmul(a, a.T), expected)
    assert plan_cache.get(key_of(a, a.T)) is IS_NUMPYS
    monkeypatch.setattr(arrays, "plan_and_executor", None)
    np.testing.assert_array_equal(matmul(a, a.T), expected)
    square = expected.copy()
    plan_cache.put(key_of(square, square), IS_NUMPYS)
    np.testing.assert_allclose(matmul(square, square, out=square), expected @ expected, rtol=1e-5)
    plan_cache.clear()


@pytest.mark.parametrize("count", [1, 3, 40])
def test_the_smallest_are_those_of_a_stable_sort(count):
    rng = np.random.default_rng(count)
    for values in (rng.integers(0, 6, 30) / 1.0, np.where(rng.random(30) < 0.4, np.inf, 1.0), np.full(30, np.nan)):
        values[rng.integers(0, 30, 4)] = np.nan
        np.testing.assert_array_equal(smallest(values, count), np.argsort(values, kind="stable")[:count])


def test_a_plan_asks_for_the_free_memory_once_or_twice(flat):
    asked = []

    def free_bytes() -> float:
        asked.append(1)
        return 1e9

    found = decision_for(Request(8192, 8192, 8192), machine=replace(flat, free_bytes=free_bytes))
    assert found.plan.workspace <= 1e9
    assert any("are free" in reason for _, reason in found.refused)
    assert 1 <= len(asked) <= 3


def test_few_values_are_alive_at_once_and_bfloat16_sums_round_to_nearest(strassen):
    """Every step has what it needs, every result is stored once, and registers bound what is held."""
    program = lcma.program_of(strassen)
    for linear in (maps_of(flatten(program, program)).left, maps_of(flatten(program, program)).merge):
        for registers in (6, 28):
            stored, made, loads = [], set(), 0
            for step in schedule(linear, registers):
                if isinstance(step, Keep):
                    assert step.value in made
                    stored.append(step.result)
                    continue
                if isinstance(step, Take):
                    loads += 1
                else:
                    assert step.terms == (*linear.lins, *linear.results)[step.value - linear.sources]
                    assert {src for _, src in step.terms} <= made
                made.add(step.value)
            assert sorted(stored) == list(range(len(linear.results)))
            assert loads >= linear.sources
        plenty = [step for step in schedule(linear, 1000) if isinstance(step, Take)]
        assert len(plenty) == linear.sources
    torch = pytest.importorskip("torch")
    kernel = rows_kernel(LinearMap(2, (), (((1, 0), (-1, 1)), ((3, 0), (1, 1)))), "bfloat16")
    x = torch.randn(2, 3, 50, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    x[0, 0, 0] = float("nan")
    source, target = x.view(torch.int16).numpy().view(np.uint16), np.zeros((2, 3, 64), np.uint16)
    blocks = [*source, *target]
    table = blocks_at([x.ctypes.data for x in blocks], [x.strides[0] for x in blocks], (1, 3, 50))
    kernel(table.ctypes.data, 0, 0, 50, False, 0, 3)
    got = torch.from_numpy(target[:, :, :50].copy().view(np.int16)).view(torch.bfloat16)
    wide = x.float()
    expected = torch.stack([wide[0] - wide[1], 3 * wide[0] + wide[1]]).to(torch.bfloat16)
    assert torch.equal(got.isnan(), expected.isnan())
    assert torch.equal(got.nan_to_num(), expected.nan_to_num())


GENERIC = """
import numpy as np
from lcma.kernels.codegen.host import host
from lcma.kernels import matmul
assert host().vector_bytes == 16, host()
a = np.random.default_rng(0).standard_normal((67, 45)).astype(np.float32)
np.testing.assert_allclose(matmul(a, a.T, "strassen"), a @ a.T, atol=1e-4)
"""


def test_code_for_a_plain_processor(warm_home, new_process):
    new_process(GENERIC, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")

"""Choosing by a profile: limits, fallbacks, stored profiles, workloads; and generic code for other processors."""

import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from lcma.errors import SchemeFormatError
from lcma.kernels import Request, api, decision_for, matmul
from lcma.kernels.api import finite
from lcma.kernels.codegen.maps import LinearMap, maps_of
from lcma.kernels.codegen.rows import rows_kernel
from lcma.kernels.codegen.schedule import schedule
from lcma.kernels.cpu.blocks import Blocks
from lcma.kernels.cpu.estimate import profile_for
from lcma.kernels.cpu.hardware import machine_id
from lcma.kernels.dense.chains import smallest
from lcma.kernels.planning.cache import plan_cache
from lcma.kernels.planning.profile import Profile
from lcma.kernels.planning.profiles import find_profile, forget_profiles, keep_profile, profiles_folder, published
from lcma.kernels.products import arrays
from lcma.kernels.products.arrays import IS_NUMPYS, key_of
from lcma.schemes_db.flatten import flatten
from lcma.schemes_db.straightline import program_of
from lcma.workbench.bench.workloads import layers, sample

from ..refusal import refuses, refuses_with


@pytest.fixture
def decide(flat, machine_of):
    """decide(request, profile=flat): the decision among Strassen's scheme alone, on one thread."""

    def decided(request, profile=flat.profile):
        return decision_for(request, machine=machine_of(profile, schemes=flat.schemes))

    return decided


def test_large_products_take_a_scheme_and_small_or_thin_ones_do_not(decide):
    large = decide(Request(4096, 4096, 4096))
    assert (large.plan.candidate.strategy, large.plan.candidate.method) == ("scheme", "batched")
    assert large.plan.seconds < 0.85 * large.baseline.seconds
    assert [one.bound for one in large.proposals] == sorted(one.bound for one in large.proposals)
    for sizes in ((128, 128, 128), (4096, 8, 4096)):
        assert decide(Request(*sizes)).plan.candidate.strategy == "vendor"
    thin = decide(Request(3, 4096, 4096))
    assert "memory-bound (Eq. 8" in thin.reason


def test_a_machine_without_rates_multiplies_as_the_library_does(decide):
    decision = decide(Request(4096, 4096, 4096), Profile("none", "test"))
    assert decision.plan.candidate.strategy == "vendor"
    assert "lcma doctor --profile" in decision.reason


def test_the_error_bound_is_respected(decide):
    free = decide(Request(4096, 4096, 4096))
    tight = decide(Request(4096, 4096, 4096, max_error=3e-3))
    assert tight.plan.candidate.strategy == "scheme"
    assert tight.plan.candidate.program.rank < 49 or tight.plan.candidate != free.plan.candidate
    none = decide(Request(4096, 4096, 4096, max_error=2.5e-4))
    assert none.plan.candidate.strategy == "vendor"
    assert "within these limits" in none.reason


def test_profiles_are_stored_and_a_damaged_one_counts_as_none(home, flat, monkeypatch):
    monkeypatch.setenv("LCMA_NUM_THREADS", "1")
    mine = Profile(machine_id(1), "test", gemm=flat.profile.gemm, source="measured")
    assert profile_for().source == "estimated"
    path = keep_profile(mine)
    assert path.parent == profiles_folder()
    assert profile_for() == mine
    path.write_text("{")
    refuses_with(SchemeFormatError, "not a machine profile", find_profile, str(path))
    forget_profiles()
    assert profile_for().source == "estimated"
    keep_profile(mine)
    assert profile_for() == mine


def test_published_machines_are_marked(decide):
    papers = {"nvidia-h20", "nvidia-a100-40gb", "intel-8255c", "amd-epyc-9k84", "arm-neoverse-v1"}
    assert papers | {"nvidia-h100", "nvidia-h200"} == set(published())
    assert all(one.source == "published" and one.notes for one in published().values())
    assert find_profile("nvidia-h20").bandwidth == 4.0e12
    found = decide(Request(8192, 8192, 8192), find_profile("amd-epyc-9k84"))
    assert found.plan.candidate.strategy == "scheme"
    refuses("not known; choose one of amd-epyc-9k84", find_profile, "no such machine")


def test_the_layers_of_the_models():
    counts = {model: sum(layer.model == model for layer in layers()) for model in ("DeepSeek-R1", "Qwen3.5-397B")}
    assert counts == {"DeepSeek-R1": 11, "Qwen3.5-397B": 7}
    assert len(layers()) == 24
    taken = sample(24)
    assert len(taken) == 24
    assert len({layer for _, layer in taken}) > 12
    assert max(m for m, _ in taken) <= 8192


def test_small_products_are_numpys_own(monkeypatch):
    a = np.random.default_rng(0).standard_normal((30, 40)).astype(np.float32)
    with monkeypatch.context() as patched:
        patched.setattr(arrays, "plan_and_executor", None)
        np.testing.assert_array_equal(matmul(a, a.T), a @ a.T)
        out = np.empty((30, 30), np.float32)
        assert matmul(a, a.T, out=out) is out
        refuses("inner sizes differ", matmul, a, a)
    refuses("leave levels out", matmul, a, a.T, levels=2)


def test_a_plan_that_is_numpys_product_is_remembered(monkeypatch):
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


def test_infinities_are_reported():
    assert finite(np.ones(3), np.ones((2, 2)))
    assert not finite(np.ones(3), np.array([np.inf]))


def test_few_values_are_alive_at_once(strassen):
    """Every step has what it needs, every result is stored once, and registers bound what is held."""
    program = program_of(strassen)
    for linear in (maps_of(flatten(program, program)).left, maps_of(flatten(program, program)).merge):
        for registers in (6, 28):
            stored, made, loads = [], set(), 0
            for step in schedule(linear, registers):
                if step.what == "load":
                    loads += 1
                    made.add(step.value)
                elif step.what == "make":
                    assert {src for _, src in linear.lins[step.value - linear.sources]} <= made
                    made.add(step.value)
                else:
                    assert {src for _, src in linear.results[step.value]} <= made
                    stored.append(step.value)
            assert sorted(stored) == list(range(len(linear.results)))
            assert loads >= linear.sources
        plenty = [step for step in schedule(linear, 1000) if step.what == "load"]
        assert len(plenty) == linear.sources


def test_bfloat16_sums_round_to_nearest():
    torch = pytest.importorskip("torch")
    kernel = rows_kernel(LinearMap(2, (), (((1, 0), (-1, 1)), ((3, 0), (1, 1)))), "bfloat16")
    x = torch.randn(2, 3, 50, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    x[0, 0, 0] = float("nan")
    source, target = x.view(torch.int16).numpy().view(np.uint16), np.zeros((2, 3, 64), np.uint16)
    blocks = [*source, *target]
    table = Blocks.of([x.ctypes.data for x in blocks], [x.strides[0] for x in blocks], (1, 3, 50)).table
    kernel.bound(table, np.zeros(2, np.int64), 50, False)(0, 3)
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


def test_code_for_a_plain_processor(warm_home):
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    subprocess.run([sys.executable, "-c", GENERIC], check=True, env=environment)

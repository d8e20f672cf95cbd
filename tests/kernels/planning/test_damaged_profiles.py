"""A profile on disk that cannot be true counts as none, and never breaks a product; estimates in its place."""

import json

import numpy as np
import pytest

import lcma
from lcma.kernels import Profile, api
from lcma.kernels.cpu.estimate import calibrated, estimated, profile_for
from lcma.kernels.cpu.hardware import machine_id
from lcma.kernels.planning.profile import GemmRate
from lcma.kernels.planning.profiles import forget_profiles, keep_profile

DAMAGES = {
    "a rate of 0": lambda data: data["gemm"][0].update(rate=0),
    "a rate that is no number": lambda data: data["gemm"][0].update(rate=float("nan")),
    "an infinite rate": lambda data: data["gemm"][0].update(rate=float("inf")),
    "a negative rate": lambda data: data["gemm"][0].update(rate=-1e11),
    "a rate in words": lambda data: data["gemm"][0].update(rate="fast"),
    "a truth value for a rate": lambda data: data["gemm"][0].update(rate=True),
    "no rate": lambda data: data["gemm"][0].update(rate=None),
    "a rate beyond all floats": lambda data: data["gemm"][0].update(rate=10**400),
    "a rate of no machine": lambda data: data["gemm"][0].update(rate=1e30),
    "a rate of no machine in whole digits": lambda data: data["gemm"][0].update(rate=10**30),
    "a rate that is almost 0": lambda data: data["gemm"][0].update(rate=1e-300),
    "a bandwidth that is almost 0": lambda data: data.update(bandwidth=5e-324),
    "sums of no machine": lambda data: data.update(combine_rate=1e300),
    "a cache of no machine": lambda data: data.update(caches=[10**30]),
    "a size of no matrix": lambda data: data["gemm"][0].update(k=10**30),
    "a negative overhead": lambda data: data.update(call_overhead=-1.0),
    "an overhead of an age": lambda data: data.update(call_overhead=1e300),
    "a library that is no text": lambda data: data["gemm"][0].update(backend=["numpy"]),
    "a size of 0": lambda data: data["gemm"][0].update(m=0),
    "a bandwidth of 0": lambda data: data.update(bandwidth=0),
    "sums in words": lambda data: data.update(combine_rate="fast"),
    "rates that are no list": lambda data: data.update(gemm=7),
    "a dtype that is no text": lambda data: data["gemm"][0].update(dtype=32),
    "a name that is no text": lambda data: data.update(id=5),
    "versions that are no pairs": lambda data: data.update(versions=[1]),
    "versions that are no texts": lambda data: data.update(versions=[[["numpy"], 2]]),
    "a field that is not known": lambda data: data.update(colour="blue"),
    "a source that is not known": lambda data: data.update(source="guessed"),
    "an overhead that is no number": lambda data: data.update(call_overhead=float("nan")),
}


GOOD = (GemmRate("float32", 64, 64, 64, 1e11, "whole", "numpy"),)


@pytest.fixture
def alone(home, monkeypatch):
    monkeypatch.setenv("LCMA_NUM_THREADS", "1")


def damaged(damage):
    """This machine's profile on disk, with one thing wrong."""
    path = keep_profile(Profile(machine_id(1), "test", (), GOOD, 5e10, 5e10, source="measured"))
    assert profile_for().source == "measured"
    data = json.loads(path.read_text())
    DAMAGES[damage](data)
    path.write_text(json.dumps(data))
    forget_profiles()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_profile_counts_as_none(alone, damage):
    damaged(damage)
    assert profile_for().source == "estimated"
    assert profile_for() == estimated(1)


def test_a_damaged_profile_breaks_no_product(alone, monkeypatch):
    damaged("a rate of 0")
    monkeypatch.setattr(api, "SMALL", 0)
    a = np.random.default_rng(0).standard_normal((30, 31)).astype(np.float32)
    np.testing.assert_allclose(lcma.matmul(a, a.T), a @ a.T, rtol=1e-5)


def test_a_profile_without_the_dtype_has_estimated_rates_of_it(alone):
    keep_profile(Profile(machine_id(1), "test", (), GOOD, 5e10, 5e10, source="measured"))
    found = profile_for("float64")
    assert found.source == "measured"
    assert found.rates("float64") is not None
    assert found.gemm[0] == GOOD[0]


@pytest.mark.parametrize("threads", [1, 2, 16, 128])
def test_estimated_rates_grow_with_size_and_threads_and_are_finite(threads):
    profile = estimated(threads)
    for dtype in ("float32", "float64", "complex64", "bfloat16"):
        rates = [profile.gemm_rate(dtype, size, size, size) for size in (128, 512, 2048)]
        assert rates == sorted(rates)
        assert all(1e9 < rate < 1e15 for rate in rates)
        assert profile.gemm_rate(dtype, 256, 256, 256, "tasks") >= profile.gemm_rate(dtype, 256, 256, 256)
    assert profile.gemm_rate("float32", 2048, 2048, 2048) > profile.gemm_rate("float64", 2048, 2048, 2048)


def test_estimated_rates_are_scaled_to_what_calls_took():
    before = estimated(2)
    slow, fast = 2e9, 8e9
    timed = [GemmRate("float32", 1000, 1000, 1000, slow, "whole", "numpy")]
    timed.append(GemmRate("float32", 1000, 1000, 1000, fast, "whole", "torch"))
    after = calibrated(before, timed)
    assert after.backend("float32", 1000, 1000, 1000) == "torch"
    assert after.gemm_rate("float32", 1000, 1000, 1000) == pytest.approx(fast, rel=1e-6)
    scale = slow / before.gemm_rate("float32", 1000, 1000, 1000)
    tasks = [profile.gemm_rate("float32", 512, 512, 512, "tasks") for profile in (before, after)]
    assert tasks[1] == pytest.approx(scale * tasks[0], rel=1e-6)
    assert after.gemm_rate("float64", 64, 64, 64) == before.gemm_rate("float64", 64, 64, 64)
    measured = Profile("m", "test", (), GOOD, 5e10, 5e10, source="measured")
    assert calibrated(measured, timed) is measured

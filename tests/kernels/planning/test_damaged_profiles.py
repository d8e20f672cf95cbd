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

NAN, INF = float("nan"), float("inf")
OF_A_RATE = {
    "rate": (0, NAN, INF, -1e11, "fast", True, None, 10**400, 1e30, 10**30, 1e-300),
    "m": (0,),
    "k": (10**30,),
    "dtype": (32,),
    "backend": (["numpy"],),
}
OF_A_PROFILE = {
    "bandwidth": (0, 5e-324),
    "combine_rate": ("fast", 1e300),
    "caches": ([10**30],),
    "call_overhead": (NAN, -1.0, 1e300),
    "gemm": (7,),
    "id": (5,),
    "versions": ([1], [[["numpy"], 2]]),
    "source": ("guessed",),
    "colour": ("blue",),
}
DAMAGES = [("gemm", name, value) for name, values in OF_A_RATE.items() for value in values]
DAMAGES += [("", name, value) for name, values in OF_A_PROFILE.items() for value in values]
"""The list whose first entry is damaged (or the profile itself), a field, and a value that it cannot have."""

GOOD = (GemmRate("float32", 64, 64, 64, 1e11, "whole", "numpy"),)


@pytest.fixture
def alone(home, monkeypatch):
    monkeypatch.setenv("LCMA_NUM_THREADS", "1")


def damage(within, name, value):
    """Store this machine's profile with one thing wrong."""
    path = keep_profile(Profile(machine_id(1), "test", (), GOOD, 5e10, 5e10, source="measured"))
    assert profile_for().source == "measured"
    data = json.loads(path.read_text())
    (data[within][0] if within else data)[name] = value
    path.write_text(json.dumps(data))
    forget_profiles()


@pytest.mark.parametrize(("within", "name", "value"), DAMAGES)
def test_a_damaged_profile_counts_as_none(alone, within, name, value):
    damage(within, name, value)
    assert profile_for().source == "estimated"
    assert profile_for() == estimated(1)


def test_a_damaged_profile_breaks_no_product(alone, monkeypatch):
    damage("gemm", "rate", 0)
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

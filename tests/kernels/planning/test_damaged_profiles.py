"""A profile on disk that cannot be true is measured again, and never breaks a product."""

from __future__ import annotations

import json

import numpy as np
import pytest

import lcma
from lcma.kernels import Profile, Request, api
from lcma.kernels.cpu import estimate, machine, measure
from lcma.kernels.cpu.hardware import machine_id, machine_profile
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
def asked(home, monkeypatch):
    """The dtypes that were measured, by a measurement that takes no time; one thread."""
    monkeypatch.setenv("LCMA_NUM_THREADS", "1")
    found = []

    def measured(dtypes, quick):
        found.append(dtypes)
        return Profile(machine_id(1), "test", (), GOOD, 5e10, 5e10, source="measured", notes="again")

    monkeypatch.setattr(estimate, "_ESTIMATES", {})
    monkeypatch.setattr(estimate.CpuLoadMonitor, "share", lambda self: 0.0)
    monkeypatch.setattr(measure, "measure", measured)
    monkeypatch.setattr(machine, "profile_for", estimate.profile_for)
    return found


def damaged(damage):
    """This machine's profile on disk, with one thing wrong."""
    path = keep_profile(Profile(machine_id(1), "test", (), GOOD, 5e10, 5e10, source="measured"))
    data = json.loads(path.read_text())
    DAMAGES[damage](data)
    path.write_text(json.dumps(data))
    forget_profiles()
    assert machine_profile().source == "unmeasured"


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_profile_is_measured_again(asked, damage):
    damaged(damage)
    assert estimate.profile_for(Request(8, 8, 8)).notes == "again"
    assert asked == [("float32",)]
    assert machine_profile().notes == "again"


def test_a_damaged_profile_breaks_no_product(asked, monkeypatch):
    damaged("a rate of 0")
    monkeypatch.setattr(api, "SMALL", 0)
    a = np.random.default_rng(0).standard_normal((30, 31)).astype(np.float32)
    np.testing.assert_allclose(lcma.matmul(a, a.T), a @ a.T, rtol=1e-5)
    assert asked == [("float32",)]
    assert machine_profile().notes == "again"

"""Wisdom and profiles on the disk: what they decide, damaged files, and the cache of plans, which changes empty.

Tuning: what is timed, checked and stored; strategies of other packages: registered, chosen, run, and gone again.
"""

import itertools
import json
import os
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest

import lcma
from lcma.kernels import Layout, Profile, Request, api, decision_for, strategies, tune, unregister_strategy
from lcma.kernels.causal.candidates import stable_scheme_names
from lcma.kernels.cpu import bench as cpu_bench
from lcma.kernels.cpu.bench import CpuBench
from lcma.kernels.cpu.machine import calibrated, estimated, machine_id, profile_for
from lcma.kernels.dense.pool import SchemePool  # its module watches the catalogue, too
from lcma.kernels.planning import cache, profile
from lcma.kernels.planning.cache import PlanCache, plan_cache
from lcma.kernels.planning.profile import GemmRate, forget_profiles, keep_profile, stored_profile
from lcma.kernels.planning.wisdom import (
    TimedCandidate,
    Wisdom,
    WisdomRecord,
    class_of,
    keep_record,
    sizes_of,
    stored_wisdom,
)
from lcma.kernels.request import structures_of
from lcma.schemes_db.shipped import shipped
from lcma.schemes_db.symmetry import SIDES, Triangle

from ...refusal import refuses, refuses_with
from ..cases import table
from ..plugin import Plugin

REQUEST = Request(2048, 2048, 2048)
TIMES = itertools.count(10**18, 10**9)
"""Times of change of files that are written faster than clocks tick."""


def entry(plan, seconds):
    return TimedCandidate(*plan.candidate.key, seconds, plan.seconds)


def record(request, *entries):
    return WisdomRecord(class_of(request), sizes_of(request), "2026-01-02", entries)


@pytest.fixture
def plans(flat):
    """The baseline's plan and the one that is chosen by prediction."""
    found = decision_for(REQUEST, machine=flat)
    assert not found.is_baseline
    return found.baseline, found.plan


def test_what_was_measured_outranks_what_is_predicted_but_candidates_that_are_gone(flat, plans):
    vendor, scheme = plans
    for vendor_seconds, scheme_seconds, best in ((1.0, 2.0, vendor), (1.0, 0.99, scheme), (1.0, 0.999, vendor)):
        wisdom = Wisdom((record(REQUEST, entry(vendor, vendor_seconds), entry(scheme, scheme_seconds)),))
        found = decision_for(REQUEST, machine=replace(flat, wisdom=wisdom))
        assert found.measured
        assert found.plan.candidate == best.candidate
        assert found.reason.startswith("measured 2026-01-02: ")
    gone = replace(entry(scheme, 0.1), strategy="of-another-package")
    lost = replace(entry(scheme, 0.1), source="0" * 64 + "@mkn")
    other = replace(entry(scheme, 0.1), source=f"{shipped('eca-stage1').scheme.digest}@mkn")  # not of general products
    wisdom = Wisdom((record(REQUEST, entry(vendor, 1.0), gone, lost, other, entry(scheme, 0.5)),))
    found = decision_for(REQUEST, machine=replace(flat, wisdom=wisdom))
    assert found.plan.candidate == scheme.candidate
    alone = Wisdom((record(REQUEST, entry(vendor, 1.0), gone, lost),))
    assert decision_for(REQUEST, machine=replace(flat, wisdom=alone)).is_baseline


def test_a_record_serves_requests_of_its_sizes_and_its_class(plans):
    vendor, _ = plans
    mine = record(REQUEST, entry(vendor, 1.0))
    wisdom = Wisdom((mine,))
    assert wisdom.record(REQUEST) == mine
    for change in (
        {"m": 2047},
        {"dtype": "float64"},
        {"batch_a": (2,)},
        {"batch_a": (2,), "batch_b": (2,)},
        {"static": "B"},
        {"layouts": (Layout.COLUMNS, Layout.ROWS, Layout.ROWS)},
    ):
        assert wisdom.record(replace(REQUEST, **change)) is None, change
    other = record(replace(REQUEST, m=2400), entry(vendor, 2.0))
    both = wisdom.with_record(other)
    assert both.record(other_request := replace(REQUEST, m=2400)) == other
    assert both.with_record(record(other_request, entry(vendor, 3.0))).record(REQUEST) == mine
    assert both.with_record(other) == both


def test_records_are_stored_and_damaged_files_count_as_none(home, plans):
    mine = record(REQUEST, *(entry(plan, seconds) for plan, seconds in zip(plans, (1.0, 0.5), strict=True)))
    path = keep_record("flat", mine)
    assert stored_wisdom("flat") == Wisdom((mine,))
    assert stored_wisdom("other") is None
    good = json.loads(path.read_text())
    first = good["records"][0]

    candidate = first["candidates"][0]
    of_candidates = [*table(__file__, "candidates"), {"seconds": None}]
    records = [*table(__file__, "records"), {"sizes": [1, 2, 10**400, 1]}]
    records += [{"candidates": [{**candidate, **change}]} for change in of_candidates]
    files = [*table(__file__, "wisdom"), *({"records": [{**first, **change}]} for change in records)]
    for damage in ("{", "[]", "null", *(json.dumps({**good, **change}) for change in files)):
        path.write_text(damage)
        os.utime(path, ns=(next(TIMES), next(TIMES)))
        assert stored_wisdom("flat") is None, damage
    keep_record("flat", mine)
    assert stored_wisdom("flat") == Wisdom((mine,))


DAMAGES = [("gemm", name, value) for name, values in table(__file__, "rates") for value in (*values, None, 10**400)]
DAMAGES += [("", name, value) for name, values in table(__file__, "profiles") for value in values]
"""The list whose first entry is damaged (or the profile itself), a field, and a value that it cannot have."""

GOOD = (GemmRate("float32", 64, 64, 64, 1e11, "whole", "numpy"),)


@pytest.fixture
def alone(home, monkeypatch):
    monkeypatch.setenv("LCMA_NUM_THREADS", "1")


def mine():
    return Profile(machine_id(1), "test", (("numpy", "2"),), GOOD, 5e10, None, (1, 2), source="measured")


def damage(within, name, value):
    """Store this machine's profile with one thing wrong."""
    path = keep_profile(mine())
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


def test_a_damaged_profile_breaks_no_product_and_other_dtypes_are_estimated(alone, monkeypatch):
    assert profile_for().source == "estimated"
    path = keep_profile(mine())
    assert path.parent == profile.profiles_folder()
    for text in ("{}", "[]", "no", "{"):
        path.write_text(text)
        refuses_with(lcma.SchemeFormatError, "not a machine profile", profile.find_profile, str(path))
    forget_profiles()
    assert profile_for().source == "estimated"
    keep_profile(mine())
    assert profile_for() == mine()
    assert mine().gemm_rate("float32", 100, 100, 100) == pytest.approx(GOOD[0].rate)
    assert mine().gemm_rate("float64", 1, 1, 1) is None
    found = profile_for("float64")
    assert found.source == "measured"
    assert found.rates("float64") is not None
    assert found.gemm[0] == GOOD[0]
    damage("gemm", "rate", 0)
    monkeypatch.setattr(api, "SMALL", 0)
    a = np.random.default_rng(0).standard_normal((30, 31)).astype(np.float32)
    np.testing.assert_allclose(lcma.matmul(a, a.T), a @ a.T, rtol=1e-5)


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
    measured = mine()
    assert calibrated(measured, timed) is measured


RECORD = WisdomRecord("class", (1, 2, 3, 1), "2026-01-01", (TimedCandidate("dense", "vendor", "", (), 1.0, None),))


@pytest.fixture
def clock(monkeypatch):
    """clock(seconds): so much later."""
    now = [1000.0]
    monkeypatch.setattr(cache, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(plan_cache, "_checked", 0.0)

    def later(seconds: float) -> None:
        now[0] += seconds

    return later


def test_the_cache_drops_the_least_recently_used_and_all_within_a_second_of_a_change(clock):
    kept = PlanCache(most=3)
    for size in range(5):
        kept.put(size, str(size))
    assert [kept.get(size) for size in range(5)] == [None, None, "2", "3", "4"]
    kept.get(2)
    kept.put(5, "5")
    assert (kept.get(2), kept.get(3)) == ("2", None)
    assert len(kept) == 3
    kept, stamp = PlanCache(), [1]
    kept.watch(lambda: stamp[0])
    kept.get("first look")
    kept.put("plan", "old")
    clock(2)
    assert kept.get("plan") == "old"
    stamp[0] = 2
    assert kept.get("plan") == "old"  # a look at files costs more than a lookup: not at every one
    clock(cache.CHECK_SECONDS + 0.01)
    assert kept.get("plan") is None


@pytest.mark.parametrize("change", ["profile", "wisdom"])
def test_what_this_process_stores_empties_it_at_once(home, change):
    plan_cache.put("plan", "old")
    if change == "profile":
        keep_profile(Profile("mine", "test", source="measured"))
    else:
        keep_record("mine", RECORD)
    assert plan_cache.get("plan") is None


OTHERS = {
    "profile": """
from lcma.kernels import Profile
from lcma.kernels.planning.profile import keep_profile
keep_profile(Profile("theirs", "test", source="measured"))
""",
    "catalogue": """
import lcma
scheme = lcma.rotate(lcma.resolve("2x2x3")[0])
both = lcma.tensor(scheme, scheme)
with lcma.Catalog.open() as catalog:
    catalog.add(both, lcma.certify(both))
""",
}


@pytest.mark.parametrize("change", OTHERS)
def test_what_another_process_stores_empties_it_within_a_second(home, clock, new_process, change):
    with lcma.Catalog.open() as catalog:  # there is one, from a use before
        assert list(catalog.entries())
    plan_cache.get("a look")
    clock(2)
    plan_cache.get("a look at what is there now")
    plan_cache.put("plan", "old")
    clock(2)
    assert plan_cache.get("plan") == "old"
    assert stored_profile("theirs") is None
    new_process(OTHERS[change])
    clock(cache.CHECK_SECONDS + 0.01)
    assert plan_cache.get("plan") is None
    assert (stored_profile("theirs") is not None) == (change == "profile")


RATES = tuple(GemmRate(dtype, 64, 64, 64, 1e9) for dtype in ("float32", "float64"))
SLOW = Profile("slow", "test", (), RATES, 5e10, 5e10, add_rate=1e12)
"""Products so slow that schemes seem to gain at sizes that tests can compute."""

SMALL = Request(256, 256, 256, "float64")


@dataclass
class Played(CpuBench):
    """A bench whose clock is a table: seconds by the name of the candidate, 1 for those that it lacks."""

    times: dict[str, float] = field(default_factory=dict)
    timed: list[str] = field(default_factory=list)

    def interleaved(self, calls, rounds):
        self.timed += calls
        for call in calls.values():
            call()
        return {name: [self.times.get(name, 1.0)] * rounds for name in calls}


@pytest.fixture
def slow(strassen, machine_of):
    return machine_of(SLOW, schemes=SchemePool.of([strassen]))


@pytest.fixture
def played(monkeypatch):
    bench = Played()
    monkeypatch.setattr(cpu_bench, "CpuBench", lambda: bench)
    return bench


def test_the_fastest_candidate_is_stored_and_chosen_from_then_on(home, slow, played):
    before = decision_for(SMALL, machine=slow)
    assert before.plan.candidate.source is not None
    assert not before.measured
    played.times = {"vendor, library numpy": 0.5}
    events = []
    found = tune(SMALL, machine=slow, rounds=3, on_event=events.append)
    assert played.timed[0] == "vendor, library numpy"
    assert str(before.plan.candidate) in played.timed
    assert found[0].plan.label == "vendor"
    assert [one.seconds for one in found] == sorted(one.seconds for one in found)
    assert found[0].plan.library == "numpy"
    assert [one.ratio for one in found] == [1.0, *[0.5] * (len(found) - 1)]
    assert all(one.error < 1e-12 for one in found)
    assert any(str(before.plan.candidate) in line for line in events)
    after = decision_for(SMALL, machine=replace(slow, wisdom=stored_wisdom("slow")))
    assert after.measured
    assert after.is_baseline


def test_a_triangular_products_strategy_is_stored_and_chosen_from_then_on(home, slow, played):
    request = Request(512, 1024, 512, structures=structures_of(Triangle("out")))
    played.times = {"scheme eca-stage2, grouped": 0.5}
    seconds = {one.plan.label: one.seconds for one in tune(request, machine=slow, rounds=1, top=3)}
    assert set(seconds) > {"strips"}
    assert set(seconds) <= {"strips", "vendor", *stable_scheme_names()}
    stored = stored_wisdom("slow")
    assert {entry.source or entry.strategy: entry.seconds for entry in stored.record(request).entries} == seconds
    found = decision_for(request, machine=replace(slow, wisdom=stored))
    assert (found.plan.label, found.measured) == ("eca-stage2", True)


def test_top_bounds_what_is_timed_and_nothing_is_stored_unless_it_is_wanted(home, slow, played):
    tune(SMALL, machine=slow, rounds=1, top=1, keep=False)
    assert len([name for name in played.timed if not name.startswith("vendor, library")]) == 1
    assert stored_wisdom("slow") is None
    refuses("empty: there is nothing to measure", tune, Request(0, 4, 4), machine=slow)
    refuses('effort must be "predict" or "measure", not \'guess\'', decision_for, SMALL, effort="guess")


def test_a_wrong_product_is_an_error_and_nothing_is_stored(home, slow, played, monkeypatch):
    def second_is_wrong(self, *operands):
        right, calls = CpuBench.errors(self, *operands), []

        def error(product):
            calls.append(product)
            return right(product) if len(calls) == 1 else 0.5

        return error

    monkeypatch.setattr(Played, "errors", second_is_wrong)
    message = "came out wrong: relative error 5.0e-01; nothing was stored"
    refuses_with(lcma.VerificationError, message, tune, SMALL, machine=slow, rounds=1)
    assert stored_wisdom("slow") is None
    monkeypatch.setattr(Played, "errors", lambda self, *operands: lambda product: float("nan"))
    refuses_with(lcma.VerificationError, "came out wrong", tune, SMALL, machine=slow, rounds=1)


@pytest.mark.parametrize("side", [None, *SIDES])
def test_the_bench_of_a_processor_checks_every_product(side):
    """Its check passes what is right and fails what is wrong, in structures too."""
    structures = {} if side is None else {"structures": structures_of(Triangle(side))}
    request, bench = Request(40, 40, 40, "float64", (2,), (), **structures), CpuBench()
    a, b, c = bench.operands(request, 3)
    left, right, out = request.structures
    c[...] = out.naive(left.naive(a) @ right.naive(b))
    assert bench.errors(request, a, b)(c) < 1e-15
    c[0, 17, 3] += 1.0
    assert bench.errors(request, a, b)(c) > 1e-3
    same = bench.operands(request, 3)
    assert all(np.array_equal(x, y) for x, y in zip((a, b), same[:2], strict=True))


def test_calls_are_timed_in_turns_after_an_untimed_round():
    order = []
    calls = {name: lambda name=name: order.append(name) for name in "abc"}
    samples = CpuBench().interleaved(calls, 2)
    assert order == [*"abc", *"bca", *"cab"]
    assert {name: len(seconds) for name, seconds in samples.items()} == {"a": 2, "b": 2, "c": 2}
    assert all(second >= 0 for seconds in samples.values() for second in seconds)


def sevens(a, b, out=None):
    """A product that is recognised."""
    return np.full((a.shape[-2], b.shape[-1]), 7.0)


def test_a_registered_strategy_is_chosen_and_run_by_auto_and_gone_again(registered, flat_rates, monkeypatch):
    monkeypatch.setattr(api, "SMALL", 0)
    a = np.random.default_rng(0).standard_normal((20, 20))
    np.testing.assert_array_equal(lcma.matmul(a, a), a @ a)
    plugin = registered(Plugin(sevens))
    assert (lcma.matmul(a, a) == 7).all()  # the plans of before are dropped
    found = decision_for(Request.of(a, a))
    assert found.plan.strategy is plugin
    assert (found.plan.label, found.reason) == ("plugin", "fastest by prediction")
    assert (lcma.matmul(a, a, strategy="plugin") == 7).all()
    np.testing.assert_array_equal(lcma.matmul(a, a, strategy="vendor"), a @ a)
    unregister_strategy(plugin)
    np.testing.assert_array_equal(lcma.matmul(a, a), a @ a)
    refuses("'plugin' is not known", lcma.matmul, a, a, strategy="plugin")


def test_a_strategy_that_cannot_run_a_request_says_why_and_a_namesake_replaces_ours(registered, strassen, monkeypatch):
    plugin = registered(Plugin(sevens, "never on a Monday"))
    assert strategies("cpu")["dense", "plugin"] is plugin
    assert ("dense", "plugin") not in strategies("cuda")
    assert ("plugin 2x2x2:7", "never on a Monday") in decision_for(Request(8, 8, 8), strassen).refused
    free = decision_for(Request(8, 8, 8))
    assert free.is_baseline
    assert ("plugin", "never on a Monday") in free.refused
    refuses("never on a Monday", decision_for, Request(8, 8, 8), strategy="plugin")
    own = strategies("cpu")["dense", "scheme"]
    mine = registered(Plugin(sevens, name="scheme"))
    assert strategies("cpu")["dense", "scheme"] is mine
    unregister_strategy(mine)
    assert strategies("cpu")["dense", "scheme"] is own

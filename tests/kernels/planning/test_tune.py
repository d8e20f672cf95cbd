"""Tuning: what is timed, checked and stored; strategies of other packages: registered, chosen, run, and gone again."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import lcma
from lcma.kernels import Profile, Request, api, decision_for, strategies, tune, unregister_strategy
from lcma.kernels.causal.candidates import stable_scheme_names
from lcma.kernels.cpu import bench as cpu_bench
from lcma.kernels.cpu.bench import CpuBench
from lcma.kernels.dense.pool import SchemePool
from lcma.kernels.planning.profile import GemmRate
from lcma.kernels.planning.wisdom import stored_wisdom
from lcma.kernels.request import structures_of
from lcma.schemes_db.symmetry import SIDES, Triangle

from ...refusal import refuses
from ..plugin import Plugin

RATES = tuple(GemmRate(dtype, 64, 64, 64, 1e9) for dtype in ("float32", "float64"))
SLOW = Profile("slow", "test", (), RATES, 5e10, 5e10, add_rate=1e12)
"""Products so slow that schemes seem to gain at sizes that tests can compute."""

REQUEST = Request(256, 256, 256, "float64")


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
    before = decision_for(REQUEST, machine=slow)
    assert before.plan.candidate.source is not None
    assert not before.measured
    played.times = {"vendor, library numpy": 0.5}
    events = []
    found = tune(REQUEST, machine=slow, rounds=3, on_event=events.append)
    assert played.timed[0] == "vendor, library numpy"
    assert str(before.plan.candidate) in played.timed
    assert found[0].plan.label == "vendor"
    assert [one.seconds for one in found] == sorted(one.seconds for one in found)
    assert found[0].plan.library == "numpy"
    assert [one.ratio for one in found] == [1.0, *[0.5] * (len(found) - 1)]
    assert all(one.error < 1e-12 for one in found)
    assert any(str(before.plan.candidate) in line for line in events)
    after = decision_for(REQUEST, machine=replace(slow, wisdom=stored_wisdom("slow")))
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
    tune(REQUEST, machine=slow, rounds=1, top=1, keep=False)
    assert len([name for name in played.timed if not name.startswith("vendor, library")]) == 1
    assert stored_wisdom("slow") is None
    refuses("empty: there is nothing to measure", tune, Request(0, 4, 4), machine=slow)
    refuses('effort must be "predict" or "measure", not \'guess\'', decision_for, REQUEST, effort="guess")


def test_a_wrong_product_is_an_error_and_nothing_is_stored(home, slow, played, monkeypatch):
    def second_is_wrong(self, *operands):
        right, calls = CpuBench.errors(self, *operands), []

        def error(product):
            calls.append(product)
            return right(product) if len(calls) == 1 else 0.5

        return error

    monkeypatch.setattr(Played, "errors", second_is_wrong)
    with pytest.raises(lcma.VerificationError, match=r"came out wrong: relative error 5.0e-01; nothing was stored"):
        tune(REQUEST, machine=slow, rounds=1)
    assert stored_wisdom("slow") is None
    monkeypatch.setattr(Played, "errors", lambda self, *operands: lambda product: float("nan"))
    with pytest.raises(lcma.VerificationError):
        tune(REQUEST, machine=slow, rounds=1)


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


def sevens(a, b, out):
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

"""Wisdom: which record serves a request, what it decides, and files that are damaged."""

import itertools
import json
import math
import os
from dataclasses import replace

import pytest

from lcma.kernels import Layout, Machine, Profile, Request, decision_for
from lcma.kernels.dense.pool import SchemePool
from lcma.kernels.planning.profile import GemmRate
from lcma.kernels.planning.wisdom import (
    Known,
    TimedCandidate,
    Wisdom,
    WisdomRecord,
    class_of,
    keep_record,
    sizes_of,
    stored_wisdom,
)
from lcma.schemes_db.shipped import shipped

FLAT = Profile("flat", "test", (), (GemmRate("float32", 64, 64, 64, 1e11),), 5e10, 5e10, add_rate=1e12)
REQUEST = Request(2048, 2048, 2048)
TIMES = itertools.count(10**18, 10**9)
"""Times of change of files that are written faster than clocks tick."""


@pytest.fixture
def flat(strassen, machine_of) -> Machine:
    """This machine with rates that are the same at every size, and Strassen's scheme alone."""
    return machine_of(FLAT, schemes=SchemePool.of([strassen]))


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


def test_what_was_measured_outranks_what_is_predicted(flat, plans):
    vendor, scheme = plans
    for vendor_seconds, scheme_seconds, best in ((1.0, 2.0, vendor), (1.0, 0.99, scheme), (1.0, 0.999, vendor)):
        wisdom = Wisdom((record(REQUEST, entry(vendor, vendor_seconds), entry(scheme, scheme_seconds)),))
        found = decision_for(REQUEST, machine=replace(flat, wisdom=wisdom))
        assert found.measured
        assert found.plan.candidate == best.candidate
        assert found.reason.startswith("measured 2026-01-02: ")


def test_a_record_serves_requests_of_nearly_its_sizes_and_its_class(plans):
    vendor, _ = plans
    wisdom = Wisdom((record(REQUEST, entry(vendor, 1.0)),))
    assert wisdom.near(REQUEST).exact
    near = wisdom.near(replace(REQUEST, m=2500, k=1700))
    assert not near.exact
    assert near.part < wisdom.near(REQUEST).part  # what was not measured itself must gain more
    for change in (
        {"m": 2561},
        {"k": 1638},
        {"dtype": "float64"},
        {"batch_a": (2,)},
        {"batch_a": (2,), "batch_b": (2,)},
        {"static": "B"},
        {"layouts": (Layout.COLUMNS, Layout.ROWS, Layout.ROWS)},
    ):
        assert wisdom.near(replace(REQUEST, **change)) is None, change
    assert wisdom.near(Request(0, 2048, 2048)) is None
    closer = record(replace(REQUEST, m=2400), entry(vendor, 2.0))
    both = wisdom.with_record(closer)
    assert both.near(replace(REQUEST, m=2450)).record == closer
    assert both.with_record(closer) == both


def test_a_near_record_scales_predictions(flat, plans):
    vendor, scheme = plans
    known = Known(record(REQUEST, entry(vendor, 2 * vendor.seconds), entry(scheme, 3 * scheme.seconds)), exact=False)
    other = decision_for(replace(REQUEST, m=2400), machine=flat)

    def seconds(known, plan):
        return known.seconds(plan.candidate.key, plan.seconds)

    assert seconds(known, other.baseline) == pytest.approx(2 * other.baseline.seconds)
    if other.plan.candidate == scheme.candidate:
        assert seconds(known, other.plan) == pytest.approx(3 * other.plan.seconds)
    unknown = replace(other.baseline, candidate=replace(other.baseline.candidate, parameters=(("method", "other"),)))
    assert seconds(known, unknown) == pytest.approx(2 * other.baseline.seconds)  # as others of its strategy
    assert math.isnan(seconds(replace(known, exact=True), unknown))
    strange = replace(unknown, candidate=replace(unknown.candidate, strategy="other"))
    assert math.isnan(seconds(known, strange))


def test_near_a_record_what_it_lacks_may_be_chosen_by_a_scaled_prediction(flat, plans):
    """The best of a neighbouring size need not be among the best of the size that was measured."""
    vendor, scheme = plans
    worse = replace(entry(scheme, 0.99 * vendor.seconds), source="0" * 64 + "@mkn", predicted=0.9 * vendor.seconds)
    wisdom = Wisdom((record(REQUEST, entry(vendor, vendor.seconds), worse),))
    near = replace(REQUEST, m=2200)
    alone = decision_for(near, machine=flat)
    found = decision_for(near, machine=replace(flat, wisdom=wisdom))
    assert not alone.is_baseline
    gains = 1.1 * alone.plan.seconds < 0.985 * alone.baseline.seconds
    assert (found.plan.candidate == alone.plan.candidate, found.measured) == (gains, not gains)
    assert ("scaled by what was measured" in found.reason) == gains
    assert decision_for(REQUEST, machine=replace(flat, wisdom=wisdom)).is_baseline  # measured: nothing is guessed


def test_candidates_that_are_gone_are_left_out(flat, plans):
    vendor, scheme = plans
    gone = replace(entry(scheme, 0.1), strategy="of-another-package")
    lost = replace(entry(scheme, 0.1), source="0" * 64 + "@mkn")
    other = replace(entry(scheme, 0.1), source=f"{shipped('eca-stage1').scheme.digest}@mkn")  # not of general products
    wisdom = Wisdom((record(REQUEST, entry(vendor, 1.0), gone, lost, other, entry(scheme, 0.5)),))
    found = decision_for(REQUEST, machine=replace(flat, wisdom=wisdom))
    assert found.plan.candidate == scheme.candidate
    alone = Wisdom((record(REQUEST, entry(vendor, 1.0), gone, lost),))
    assert decision_for(REQUEST, machine=replace(flat, wisdom=alone)).is_baseline


def test_records_are_stored_and_damaged_files_count_as_none(home, plans):
    mine = record(REQUEST, *(entry(plan, seconds) for plan, seconds in zip(plans, (1.0, 0.5), strict=True)))
    path = keep_record("flat", mine)
    assert stored_wisdom("flat") == Wisdom((mine,))
    assert stored_wisdom("other") is None
    good = json.loads(path.read_text())
    first = good["records"][0]

    def with_first(**changes):
        return json.dumps({**good, "records": [{**first, **changes}]})

    candidate = first["candidates"][0]
    for damage in (
        "{",
        "[]",
        "null",
        json.dumps({**good, "format": 99}),
        json.dumps({**good, "records": 7}),
        with_first(sizes=[1, 2, 3]),
        with_first(sizes=[1, 2, 0, 1]),
        with_first(sizes=[1, 2, float("inf"), 1]),
        with_first(sizes=[1, 2, 10**400, 1]),
        with_first(candidates=[{**candidate, "seconds": 0}]),
        with_first(candidates=[{**candidate, "seconds": float("nan")}]),
        with_first(candidates=[{**candidate, "seconds": "soon"}]),
        with_first(candidates=[{**candidate, "seconds": 5e-324}]),
        with_first(candidates=[{**candidate, "seconds": 1e300}]),
        with_first(candidates=[{**candidate, "seconds": None}]),
        with_first(candidates=[{**candidate, "predicted": float("nan")}]),
        with_first(candidates=[{**candidate, "parameters": []}]),
        with_first(candidates=[{}]),
    ):
        path.write_text(damage)
        os.utime(path, ns=(next(TIMES), next(TIMES)))
        assert stored_wisdom("flat") is None, damage
    keep_record("flat", mine)
    assert stored_wisdom("flat") == Wisdom((mine,))

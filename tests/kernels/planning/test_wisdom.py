"""Wisdom: which record serves a request, what it decides, and files that are damaged."""

import itertools
import json
import os
from dataclasses import replace

import pytest

from lcma.kernels import Layout, Request, decision_for
from lcma.kernels.planning.wisdom import (
    TimedCandidate,
    Wisdom,
    WisdomRecord,
    class_of,
    keep_record,
    sizes_of,
    stored_wisdom,
)
from lcma.schemes_db.shipped import shipped

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


def test_what_was_measured_outranks_what_is_predicted(flat, plans):
    vendor, scheme = plans
    for vendor_seconds, scheme_seconds, best in ((1.0, 2.0, vendor), (1.0, 0.99, scheme), (1.0, 0.999, vendor)):
        wisdom = Wisdom((record(REQUEST, entry(vendor, vendor_seconds), entry(scheme, scheme_seconds)),))
        found = decision_for(REQUEST, machine=replace(flat, wisdom=wisdom))
        assert found.measured
        assert found.plan.candidate == best.candidate
        assert found.reason.startswith("measured 2026-01-02: ")


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

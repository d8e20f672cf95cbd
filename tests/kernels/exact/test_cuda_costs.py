"""Predictions of exact products on an H200 against what `lcma time --ring --device cuda` measured there."""

import json
from pathlib import Path

import pytest

from lcma.kernels import decision_for
from lcma.kernels.request import BITS, Request
from lcma.kernels.ring import exact_ring

from ..gpu import H200

pytest.importorskip("torch")

ROWS = json.loads(Path(__file__).with_name("measured_h200.json").read_text(encoding="utf-8"))
"""Ring, size, scheme, strategy, milliseconds."""


def request_of(ring, size):
    return Request(size, size, size, BITS if ring == "Z2" else "int64", device="cuda", ring=exact_ring(ring))


@pytest.mark.parametrize(("ring", "size", "scheme", "strategy", "milliseconds"), ROWS)
def test_products_take_what_is_predicted(ring, size, scheme, strategy, milliseconds):
    levels = scheme.split("/")
    named = levels if len(levels) > 1 else scheme
    plan = decision_for(request_of(ring, size), named, strategy=strategy, machine=H200).plan
    assert 1e3 * plan.seconds == pytest.approx(milliseconds, rel=0.1 if ring == "Z2" else 0.13)


@pytest.mark.parametrize(
    ("ring", "size", "candidate"),
    [
        ("Z2", 32768, "scheme 4x4x4:47"),
        ("Z2", 65536, "scheme 4x4x4:47"),
        ("Z2", 4096, "kernel"),
        ("GF(1021)", 4096, "digits"),
    ],
)
def test_the_fastest_that_was_measured_is_chosen(ring, size, candidate):
    assert str(decision_for(request_of(ring, size), machine=H200).plan.candidate) == candidate

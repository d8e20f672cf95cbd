"""Predictions of exact products on an H200 against what `lcma time --ring --device cuda` measured there."""

import pytest

from lcma.kernels import decision_for
from lcma.kernels.request import BITS, Request
from lcma.kernels.ring import exact_ring

from ..gpu import H200

pytest.importorskip("torch")

ROWS = [
    ("Z2", 32768, "auto", "leaf", 68.6),
    ("Z2", 32768, "auto", "kernel", 55.6),
    ("Z2", 32768, "4x4x4:47", "scheme", 47.6),
    ("Z2", 32768, "4x4x5:60", "scheme", 49.5),
    ("Z2", 32768, "4x5x5:73", "scheme", 54.6),
    ("Z2", 32768, "strassen", "scheme", 51.5),
    ("Z2", 65536, "auto", "leaf", 533.9),
    ("Z2", 65536, "auto", "kernel", 436.7),
    ("Z2", 65536, "4x4x4:47", "scheme", 344.8),
    ("Z2", 65536, "4x4x5:60", "scheme", 354.8),
    ("Z2", 65536, "4x4x4:47/2x2x2:7", "scheme", 347.2),
    ("GF(1021)", 2048, "auto", "leaf", 0.632),
    ("GF(1021)", 2048, "auto", "digits", 0.264),
    ("GF(8388593)", 2048, "auto", "leaf", 0.968),
    ("GF(8388593)", 2048, "auto", "digits", 0.475),
    ("GF(1021)", 4096, "auto", "leaf", 3.503),
    ("GF(1021)", 4096, "auto", "digits", 1.156),
]
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

"""Predictions of exact products on an H200 against what `lcma time --ring --device cuda` measured there."""

import pytest

from lcma.kernels import decision_for
from lcma.kernels.request import BITS, Request
from lcma.kernels.ring import exact_ring

from ..gpu import H200

pytest.importorskip("torch")

BIT_ROWS = [
    (32768, "auto", "leaf", 68.6),
    (32768, "auto", "kernel", 55.6),
    (32768, "4x4x4:47", "scheme", 47.6),
    (32768, "4x4x5:60", "scheme", 49.5),
    (32768, "4x5x5:73", "scheme", 54.6),
    (32768, "strassen", "scheme", 51.5),
    (65536, "auto", "leaf", 533.9),
    (65536, "auto", "kernel", 436.7),
    (65536, "4x4x4:47", "scheme", 344.8),
    (65536, "4x4x5:60", "scheme", 354.8),
    (65536, "4x4x4:47/2x2x2:7", "scheme", 347.2),
]

INTEGER_ROWS = [
    ("GF(1021)", 2048, "leaf", 0.632),
    ("GF(1021)", 2048, "digits", 0.264),
    ("GF(8388593)", 2048, "leaf", 0.968),
    ("GF(8388593)", 2048, "digits", 0.475),
    ("GF(1021)", 4096, "leaf", 3.503),
    ("GF(1021)", 4096, "digits", 1.156),
]


def predicted(request, scheme, strategy):
    levels = scheme.split("/")
    plan = decision_for(request, levels if len(levels) > 1 else scheme, strategy=strategy, machine=H200).plan
    return 1e3 * plan.seconds


@pytest.mark.parametrize(("size", "scheme", "strategy", "milliseconds"), BIT_ROWS)
def test_products_over_gf2_take_what_is_predicted(size, scheme, strategy, milliseconds):
    request = Request(size, size, size, BITS, device="cuda", ring=exact_ring("Z2"))
    assert predicted(request, scheme, strategy) == pytest.approx(milliseconds, rel=0.1)


@pytest.mark.parametrize(("ring", "size", "strategy", "milliseconds"), INTEGER_ROWS)
def test_products_of_integers_take_what_is_predicted(ring, size, strategy, milliseconds):
    request = Request(size, size, size, "int64", device="cuda", ring=exact_ring(ring))
    assert predicted(request, "auto", strategy) == pytest.approx(milliseconds, rel=0.13)


def test_the_fastest_that_was_measured_is_chosen():
    for size in (32768, 65536):
        request = Request(size, size, size, BITS, device="cuda", ring=exact_ring("Z2"))
        chosen = decision_for(request, machine=H200).plan.candidate
        assert str(chosen) == "scheme 4x4x4:47"
    small = Request(4096, 4096, 4096, BITS, device="cuda", ring=exact_ring("Z2"))
    assert decision_for(small, machine=H200).plan.candidate.strategy == "kernel"
    request = Request(4096, 4096, 4096, "int64", device="cuda", ring=exact_ring("GF(1021)"))
    assert decision_for(request, machine=H200).plan.candidate.strategy == "digits"

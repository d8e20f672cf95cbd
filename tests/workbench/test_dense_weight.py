"""The explanation of a product by factors compares it with the product by a dense weight."""

from dataclasses import replace
from pathlib import Path

import pytest

from lcma.kernels.cuda.machine import cuda_machine
from lcma.kernels.factored import factored_request
from lcma.kernels.planning.planner import decide, vendor_plans
from lcma.kernels.planning.profile import read_profile
from lcma.kernels.planning.wisdom import TimedCandidate, Wisdom, WisdomRecord, class_of, sizes_of
from lcma.kernels.plans.families import strategies
from lcma.kernels.request import Layout, Request
from lcma.kernels.structured.block_low_rank import LowRank
from lcma.workbench.explanation import dense_weight

GOLDEN = Path(__file__).parent.parent / "kernels" / "golden" / "profiles" / "h200.json"


@pytest.fixture(scope="module")
def machine():
    return cuda_machine(0, read_profile(GOLDEN))


def explained(machine, rows):
    request = factored_request(LowRank(1024, 1024, 64), rows, "bfloat16", device="cuda")
    decision = decide(request, machine, strategies("cuda"))
    return decision, dense_weight(decision, strategies("cuda"))


def test_few_rows_are_slower_by_factors_and_many_are_faster(machine):
    few, many = explained(machine, 16)[1], explained(machine, 4096)[1]
    assert few.basis == many.basis == "predicted"
    assert few.ratio < 1 < many.ratio
    assert "(predicted): the factors are slower, " in str(few)
    assert "(predicted): the factors are " in str(many)
    assert "times as fast" in str(many)
    dense = vendor_plans(Request(1024, 1024, 16, "bfloat16", device="cuda"), machine, strategies("cuda"))[0]
    assert few.seconds == pytest.approx(dense.seconds, rel=0.5)  # of other layouts
    assert few.factors_seconds == explained(machine, 16)[0].plan.seconds


def test_measured_seconds_are_compared_with_measured_ones_only(machine):
    found = explained(machine, 4096)[0]
    request, plan = found.request, found.plan
    seconds = TimedCandidate(*plan.candidate.key, 3e-5, plan.seconds)
    baseline = TimedCandidate(*found.baseline.candidate.key, 4e-5, found.baseline.seconds)
    by_factors = WisdomRecord(class_of(request), sizes_of(request), "2026-11-26", (seconds, baseline))
    decision, half = explained(replace(machine, wisdom=Wisdom((by_factors,))), 4096)
    assert decision.measured
    assert half.basis == "predicted"
    dense = dense_request(request)
    (vendor,) = vendor_plans(dense, machine, strategies("cuda"))
    entry = TimedCandidate(*vendor.candidate.key, 2e-5, vendor.seconds)
    by_weight = WisdomRecord(class_of(dense), sizes_of(dense), "2026-11-26", (entry,))
    both = explained(replace(machine, wisdom=Wisdom((by_factors, by_weight))), 4096)[1]
    assert (both.basis, both.seconds, both.factors_seconds) == ("measured", 2e-5, 3e-5)
    assert str(both) == "0.02 ms by the library (measured): the factors are slower, 1.500 times its time"


def dense_request(request):
    layouts = (Layout.ROWS, *request.layouts[1:])
    return Request(*request.shape, request.dtype, device="cuda", layouts=layouts)


def test_dense_products_have_no_other_weight(machine):
    request = Request(4096, 4096, 4096, "bfloat16", device="cuda")
    assert dense_weight(decide(request, machine, strategies("cuda")), strategies("cuda")) is None

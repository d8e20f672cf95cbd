"""Products in tf32 by scaled float16, without a GPU: interpreted, compiled for sm_90, and planned."""

import pytest

from lcma.errors import PlanError
from lcma.kernels import Machine
from lcma.kernels.cuda.cost_model import CudaCostModel
from lcma.kernels.cuda.h200 import h200
from lcma.kernels.dense.scaled_half import CudaScaledHalf
from lcma.kernels.planning.explain import explanation
from lcma.kernels.planning.planner import decide
from lcma.kernels.planning.strategy import Candidate
from lcma.kernels.plans.families import strategies
from lcma.kernels.precision import fields_of
from lcma.kernels.request import Request

MACHINE = Machine("cuda", h200(), CudaCostModel(h200()))


def decision(dtype, sizes, strategy=None, **limits):
    return decide(
        Request(*sizes, **fields_of(dtype), device="cuda", **limits),
        MACHINE,
        strategies("cuda"),
        strategy,
    )


@pytest.mark.parametrize("sizes", [(8192, 8192, 8192), (16384, 4096, 11264), (20480, 7168, 2048)])
def test_tf32_is_multiplied_by_scaled_float16(sizes):
    chosen = decision("tf32", sizes)
    assert str(chosen.plan.candidate) == "scaled-half"
    assert chosen.baseline.candidate.strategy == "vendor"
    assert chosen.gain > 1.08
    assert "scaled-half" in str(explanation(chosen, strategies("cuda")))
    assert [stage.name.split()[0] for stage in chosen.plan.stages] == ["Scale", "Scale", "product", "Check"]
    assert chosen.plan.workspace > 2 * (sizes[0] * sizes[1] + sizes[1] * sizes[2])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64", "fp32-accurate"])
def test_no_other_dtype_is(dtype):
    assert decision(dtype, (8192,) * 3).plan.candidate.strategy != "scaled-half"
    with pytest.raises(PlanError, match=f"scaled float16 is for the precision tf32, not for {dtype}"):
        decision(dtype, (8192,) * 3, "scaled-half")


def test_a_static_b_is_scaled_once():
    online, static = (decision("tf32", (4096, 8192, 8192), static=static) for static in (None, "B"))
    assert static.plan.seconds < online.plan.seconds
    assert "Scale B" not in [stage.name for stage in static.plan.stages]


@pytest.mark.parametrize(
    ("sizes", "limits", "reason"),
    [
        ((8192, 8192, 8192), {"max_workspace": 1000}, "more than the 1000 bytes of workspace"),
        ((8192, 8192, 8192), {"max_error": 4.1}, "its error can reach 4.5, more than the 4.1 allowed"),
        ((2048, 2048, 2048), {"batch_a": (4,)}, "of one product, not of a batch"),
        ((0, 8, 8), {}, "the product is empty"),
    ],
)
def test_refusals_give_the_reason(sizes, limits, reason):
    request = Request(*sizes, device="cuda", precision="tf32", **limits)
    strategy = CudaScaledHalf()
    assert reason in strategy.can_run(Candidate("dense", "scaled-half"), request, MACHINE)
    assert decision("tf32", sizes, **limits).plan.candidate.strategy != "scaled-half"


@pytest.mark.parametrize("sizes", [(1024, 1024, 1024), (4096, 4096, 4096), (16384, 512, 16384)])
def test_short_products_and_short_sums_are_left_to_the_vendor(sizes):
    assert decision("tf32", sizes).plan.candidate.strategy == "vendor"


@pytest.mark.parametrize("sizes", [(4096, 4096, 4096), (8192, 4096, 11264), (16384, 1536, 7168)])
@pytest.mark.parametrize("static", [None, "B"])
def test_a_bound_is_at_most_the_price(sizes, static):
    request = Request(*sizes, device="cuda", precision="tf32", static=static)
    strategy = CudaScaledHalf()
    (proposal,) = strategy.propose(request, MACHINE)
    price = sum(stage.seconds for stage in strategy.predict(proposal.candidate, request, MACHINE))
    assert proposal.bound <= price <= proposal.bound * 1.001

"""Products by float16, without a GPU: of float32 by pairs of it, and in tf32 by one scaled factor each, planned."""

import pytest

import lcma
from lcma.kernels.planning.strategy import Candidate
from lcma.kernels.plans.families import strategies
from lcma.kernels.request import Request
from lcma.workbench.explanation import explanation

from ...refusal import refuses
from ..gpu import H200, decision

SCALED_HALF = strategies("cuda")["dense", "scaled-half"]
CUBE = (8192,) * 3


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64", "tf32", "fp32-accurate"])
def test_only_one_precision_asks_for_each(dtype):
    for name, own, subject in (("split", "fp32-accurate", "halves are"), ("scaled-half", "tf32", "scaled float16 is")):
        found = decision(dtype, 8192)
        assert (found.plan.candidate.strategy == name) == (dtype == own)
        if dtype == own:
            assert found.baseline.candidate.strategy == "vendor"
            continue
        refuses(f"{subject} for the precision {own}, not for {dtype}", decision, dtype, 8192, strategy=name)
    assert decision("fp32-accurate", 8192).gain > 2
    assert decision("float32", 8192).plan.candidate.strategy == "scheme"


@pytest.mark.parametrize("dtype", ["tf32", "fp32-accurate"])
def test_without_workspace_the_product_is_the_vendors(dtype):
    assert decision(dtype, 8192, max_workspace=1000).plan.candidate.strategy == "vendor"


@pytest.mark.parametrize("sizes", [CUBE, (16384, 4096, 11264), (20480, 7168, 2048)])
def test_tf32_is_multiplied_by_scaled_float16(sizes):
    chosen = decision("tf32", *sizes)
    assert str(chosen.plan.candidate) == "scaled-half"
    assert chosen.gain > 1.08
    assert "scaled-half" in str(explanation(chosen, strategies("cuda")))
    assert [stage.name.split()[0] for stage in chosen.plan.stages] == ["Scale", "Scale", "product", "Check"]
    assert chosen.plan.workspace > 2 * (sizes[0] * sizes[1] + sizes[1] * sizes[2])


def test_a_static_b_is_scaled_once():
    online, static = (decision("tf32", 4096, 8192, 8192, static=static) for static in (None, "B"))
    assert static.plan.seconds < online.plan.seconds
    assert "Scale B" not in [stage.name for stage in static.plan.stages]


@pytest.mark.parametrize(
    ("sizes", "limits", "reason"),
    [
        (CUBE, {"max_workspace": 1000}, "more than the 1000 bytes of workspace"),
        (CUBE, {"max_error": 4.1}, "its error can reach 4.5, more than the 4.1 allowed"),
        ((2048, 2048, 2048), {"batch_a": (4,)}, "of one product, not of a batch"),
        ((0, 8, 8), {}, "the product is empty"),
    ],
)
def test_refusals_give_the_reason(sizes, limits, reason):
    request = Request(*sizes, device="cuda", precision="tf32", **limits)
    assert reason in SCALED_HALF.can_run(Candidate("dense", "scaled-half"), request, H200)
    assert decision("tf32", *sizes, **limits).plan.candidate.strategy != "scaled-half"


@pytest.mark.parametrize("sizes", [(1024, 1024, 1024), (4096, 4096, 4096), (16384, 512, 16384)])
def test_short_products_and_short_sums_are_left_to_the_vendor(sizes):
    assert decision("tf32", *sizes).plan.candidate.strategy == "vendor"


@pytest.mark.parametrize(("precision", "dtype"), [("fp32-accurate", "float32"), ("fp8", "bfloat16")])
def test_a_processor_multiplies_as_without_a_precision(precision, dtype):
    torch = pytest.importorskip("torch")
    a = torch.ones(4, 4, dtype=getattr(torch, dtype))
    assert torch.equal(lcma.matmul(a, a, precision=precision), a @ a)

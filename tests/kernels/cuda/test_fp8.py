"""Products in e4m3, without a GPU: interpreted, compiled for sm_90, and planned."""

import pytest

import lcma
from lcma.errors import PlanError
from lcma.kernels import plan_for
from lcma.kernels.cuda import fp8
from lcma.kernels.dense import fp8 as strategies_of_fp8
from lcma.kernels.request import Request
from lcma.schemes_db.resolve import resolve

from ...refusal import refuses
from ..gpu import H200, decision

torch = pytest.importorskip("torch")


def test_only_the_precision_asks_for_e4m3():
    chosen = decision("fp8", 8192)
    assert chosen.plan.candidate.strategy == "fp8-vendor"
    assert chosen.baseline.candidate.strategy == "vendor"
    for dtype in ("bfloat16", "float16", "float32", "fp32-accurate"):
        found = decision(dtype, 8192)
        assert not any(one.candidate.strategy == "fp8-vendor" for one in found.proposals)
        with pytest.raises(PlanError, match=f"products in e4m3 are for the precision fp8, not for {dtype}"):
            decision(dtype, 8192, strategy="fp8-vendor")


@pytest.mark.parametrize("rows", [16, 1024])
def test_a_static_operand_is_quantised_before(rows):
    static = decision("fp8", rows, 4096, 11008, strategy="fp8-vendor", static="B").plan
    fresh = decision("fp8", rows, 4096, 11008, strategy="fp8-vendor").plan
    assert "Quantise B" in [stage.name for stage in fresh.stages]
    assert "Quantise B" not in [stage.name for stage in static.stages]
    assert 0 < static.seconds < fresh.seconds
    assert static.workspace >= 4096 * 11008


def test_sizes_that_the_vendor_refuses_are_left_to_the_baseline():
    refuses("takes k and n in multiples of 128", decision, "fp8", 2000, strategy="fp8-vendor")
    found = decision("fp8", 2000)
    assert found.is_baseline
    assert "takes k and n in multiples of 128" in found.reason


def test_a_named_scheme_is_refused():
    request = Request(16384, 16384, 16384, "bfloat16", device="cuda", precision="fp8")
    with pytest.raises(PlanError, match="are of the strategy fp8-vendor, without a scheme"):
        plan_for(request, resolve("strassen")[0], 1, machine=H200)


def test_limits_are_respected():
    assert decision("fp8", 8192, max_workspace=1000).is_baseline
    refuses(r"its error can reach 0\.14", decision, "fp8", 8192, strategy="fp8-vendor", max_error=0.1)


def test_batches_are_the_vendors():
    found = decision("fp8", 4096, batch_a=(4,), batch_b=(4,))
    assert (found.is_baseline, found.reason) == (True, "products in e4m3 are of one product, not of a batch")


def test_a_gpu_without_e4m3_falls_back_with_the_reason(monkeypatch):
    monkeypatch.setattr(fp8, "_capability", lambda device: (8, 0))
    reason = fp8.missing_block_scales.__wrapped__(torch.device("cuda", 0))
    assert reason == "torch's scaled_mm has block scales on compute capability 9.x only, and this GPU has 8.0"
    monkeypatch.setattr(strategies_of_fp8, "on_current_gpu", lambda missing: reason)
    found = decision("fp8", 8192)
    assert (found.is_baseline, found.reason) == (True, reason)
    refuses(r"compute capability 9\.x only, and this GPU has 8\.0", decision, "fp8", 8192, strategy="fp8-vendor")


def test_other_gpus_than_hopper_have_no_block_scales_of_torch(monkeypatch):
    monkeypatch.setattr(fp8, "_capability", lambda device: (8, 9))
    missing = fp8.missing_block_scales.__wrapped__
    assert "on compute capability 9.x only" in missing(torch.device("cuda", 1))
    monkeypatch.setattr(fp8, "_capability", lambda device: (9, 0))
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    assert "from CUDA 12.9 on" in missing(torch.device("cuda", 1))
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert missing(torch.device("cuda", 1)) is None


def test_torch_accepts_the_layouts_of_the_vendors_product():
    """By the checks of torch's own operator, on tensors without data."""
    scales = torch.empty((6, 20), device="meta")
    a = fp8.Quantised(torch.empty((20, 768), dtype=torch.float8_e4m3fn, device="meta"), scales, 768)
    packed = torch.empty(fp8.packed_bytes(768, 256), dtype=torch.uint8, device="meta")
    b = fp8.unpacked(packed, 768, 256)
    found = fp8.multiply_by_vendor(a, b)
    for out in (torch.empty_like(found), torch.empty((256, 20), dtype=torch.bfloat16, device="meta").t()):
        assert fp8.multiply_by_vendor(a, b, out) is out
    assert (tuple(found.shape), found.dtype) == ((20, 256), torch.bfloat16)


def test_gradients_are_refused():
    a = torch.ones(4, 4, dtype=torch.bfloat16, requires_grad=True)
    refuses("products in fp8 have no gradient", lcma.matmul, a, a, precision="fp8")
    with torch.no_grad():
        assert torch.equal(lcma.matmul(a, a, precision="fp8"), a @ a)


def test_a_layer_in_fp8_is_for_inference():
    from lcma.kernels.torch.layers import FastLinear

    layer = FastLinear(8, 4, precision="fp8").bfloat16()
    assert "precision=fp8" in repr(layer)
    x = torch.ones(3, 8, dtype=torch.bfloat16)
    refuses("products in fp8 have no gradient", layer, x)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))
    shared = FastLinear.from_linear(torch.nn.Linear(8, 4), precision="fp8")
    assert shared.recipe == "auto;precision=fp8"
    refuses("must be fp32-accurate, fp8 or None", FastLinear, 8, 4, precision="fp4")

"""int8 products of tensors, without a GPU: plain torch, interpreted, compiled for sm_90, and planned."""

import pytest
import torch

import lcma
from lcma.errors import PlanError
from lcma.kernels.cuda import int8
from lcma.kernels.cuda.int8 import BY_KERNEL, BY_VENDOR, BY_VENDOR_IN_PLACE, vendor_operand
from lcma.kernels.cuda.packed_product import packed_executor
from lcma.kernels.planning.planner import decide
from lcma.kernels.plans.families import strategies
from lcma.kernels.request import Layout, Request

from ...refusal import refuses
from ..gpu import H200


def request_of(*sizes, max_abs=31, **more):
    m, k, n = sizes * 3 if len(sizes) == 1 else sizes
    return Request(m, k, n, "int8", device="cuda", max_abs=max_abs, **more)


def drawn(*shape, most=31):
    return torch.randint(-most, most + 1, shape, dtype=torch.int8, generator=torch.Generator().manual_seed(sum(shape)))


def exactly(a, b):
    return (a.long() @ b.long()).to(torch.int32)


@pytest.mark.parametrize("method", [BY_VENDOR, BY_VENDOR_IN_PLACE], ids=["copied", "in place"])
@pytest.mark.parametrize("sizes", [(40, 64, 24), (5, 61, 23), (17, 8, 1), (1, 1, 1)])
def test_the_vendors_product_is_padded_where_its_rules_need_it(sizes, method):
    m, k, n = sizes
    a, b = drawn(m, k), drawn(k, n)
    executor = packed_executor(request_of(m, k, n), method, 0)
    out = torch.full((n, m), -1, dtype=torch.int32).t()
    assert executor.run(a, b, out) is out
    for right in (b, b.t().contiguous().t(), executor.prepare(b)):
        assert torch.equal(executor.run(a, right), exactly(a, b))


def test_the_vendors_product_gets_b_by_columns():
    b = drawn(32, 24)
    turned = b.t().contiguous().t()
    for right, copies in ((turned, True), (turned, False), (b, False)):
        assert vendor_operand(right, copies) is right
    copied = vendor_operand(b, copies=True)
    assert (copied.stride(0), copied.data_ptr() == b.data_ptr()) == (1, False)
    assert torch.equal(copied, b)
    for right in (drawn(29, 24), drawn(24, 29).t()):  # sizes that its rules do not permit
        for copies in (True, False):
            found = vendor_operand(right, copies)
            assert (tuple(found.shape), found.stride(0)) == ((32, 24), 1)
            assert torch.equal(found[:29], right)
            assert not found[29:].any()


def test_our_product_in_plain_torch_is_exact_with_batches():
    request = request_of(19, 37, 29, max_abs=15, batch_a=(2, 1), batch_b=(3,))
    a, b = drawn(2, 1, 19, 37, most=15), drawn(3, 37, 29, most=15)
    found = packed_executor(request, BY_KERNEL, 0).run(a, b)
    assert found.dtype == torch.int32
    assert torch.equal(found, exactly(a, b))


@pytest.mark.parametrize("sizes", [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_empty_products_are_zeros(sizes):
    m, k, n = sizes
    executor = packed_executor(request_of(m, k, n), BY_KERNEL, 0)
    assert torch.equal(executor.run(drawn(m, k), drawn(k, n)), torch.zeros(m, n, dtype=torch.int32))


def test_entries_are_compared_with_the_stated_magnitude():
    a, b = drawn(20, 32), drawn(32, 16)
    a[3, 4], b[1, 2] = 32, -33
    for method in (BY_VENDOR, BY_KERNEL):
        executor = packed_executor(request_of(20, 32, 16), method, 0)
        refuses("a or b has an entry of magnitude 33, but max_abs=31 was stated; state 33", executor.run, a, b)
        refuses("b has an entry of magnitude 33", executor.prepare, b)
        refuses("a has an entry of magnitude 32", executor.run, a, executor.prepare(b.clamp(-31, 31)))
    turned = b.mT.contiguous().mT
    refuses("b has an entry of magnitude 33", packed_executor(request_of(20, 32, 16), BY_VENDOR, 0).prepare, turned)
    whole = packed_executor(request_of(20, 32, 16, max_abs=128), BY_KERNEL, 0)
    a[0, 0] = -128
    assert torch.equal(whole.run(a, b), exactly(a, b))


def test_operands_that_do_not_fit_the_plan_are_refused():
    executor = packed_executor(request_of(20, 32, 16), BY_VENDOR, 0)
    with pytest.raises(PlanError, match=r"for int8 tensors of the shapes \(20, 32\) and \(32, 16\)"):
        executor.run(drawn(20, 32).int(), drawn(32, 16).int())
    with pytest.raises(PlanError, match=r"out must be a tensor of shape \(20, 16\) and dtype torch.int32"):
        executor.run(drawn(20, 32), drawn(32, 16), torch.empty(20, 16, dtype=torch.int8))


def decision(request, **more):
    return decide(request, H200, strategies("cuda"), **more)


def test_auto_chooses_between_the_two_products_without_a_scheme():
    by_columns = (Layout.ROWS, Layout.COLUMNS, Layout.ROWS)
    assert decision(request_of(2048, layouts=by_columns)).is_baseline
    assert decision(request_of(2048)).is_baseline  # ours waits longer for the host
    assert str(decision(request_of(4096, layouts=by_columns)).plan.candidate) == "int8"
    chosen = decision(request_of(8192))
    assert str(chosen.plan.candidate) == "int8"
    assert [stage.name for stage in chosen.plan.stages] == [
        "Check the range",
        "Copy B",
        "1 products 8192x8192x8192 in int8",
    ]
    assert [stage.name for stage in chosen.baseline.stages] == [stage.name for stage in chosen.plan.stages]
    static = decision(request_of(8192, max_abs=128, static="B"), strategy="int8").plan
    assert [stage.name for stage in static.stages] == ["1 products 8192x8192x8192 in int8"]
    columns = decision(request_of(8192, max_abs=128, layouts=by_columns), strategy="int8").plan
    assert columns.seconds == static.seconds
    batched = decision(request_of(8192, max_abs=128, static="B", batch_a=(4,), batch_b=(4,)), strategy="int8").plan
    assert batched.seconds == pytest.approx(4 * static.seconds, rel=0.01)


def vendor_plan(*sizes, **more):
    return decision(request_of(*sizes, max_abs=128, **more), strategy="vendor").plan


def test_the_vendors_product_takes_b_in_place_where_a_copy_does_not_pay():
    short = vendor_plan(64)
    assert [stage.name for stage in short.stages] == ["1 products 64x64x64 in int8", "Wait for the host"]
    least = vendor_plan(4096, max_workspace=4096**2 - 1)
    assert (len(least.stages), least.workspace) == (1, 0)
    assert least.seconds > 5 * vendor_plan(4096, max_workspace=4096**2).seconds
    a, b = drawn(64, 64), drawn(64, 64)
    for plan in (short, vendor_plan(64, static="B")):
        assert torch.equal(plan.build().run(a, b), exactly(a, b))
    assert short.build().prepare(b).sums is b
    assert vendor_plan(64, static="B").build().prepare(b).sums.stride(0) == 1


def test_the_largest_results_within_int32_are_planned():
    assert decision(request_of(64, 1 << 20, 64, max_abs=45)).plan.seconds > 0


def test_cpu_tensors_are_multiplied_as_arrays(strassen):
    a, b = drawn(40, 64), drawn(64, 24)
    for scheme in ("auto", strassen):
        found = lcma.matmul(a, b, scheme, max_abs=31)
        assert found.dtype == torch.int32
        assert torch.equal(found, exactly(a, b))
    wide = lcma.matmul(a.int(), b.int(), max_abs=31)
    assert torch.equal(wide, exactly(a, b))


def test_the_operator_returns_int32_where_the_range_is_stated():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        a, b = torch.empty(8, 16, dtype=torch.int8), torch.empty(16, 4, dtype=torch.int8)
        assert torch.ops.lcma.bilinear_mm(a, b, "auto;max_abs=3").dtype == torch.int32
        assert torch.ops.lcma.bilinear_mm(a, b, "auto").dtype == torch.int8


def test_tensors_on_a_gpu_are_planned_by_their_stated_range(monkeypatch):
    """The dispatch of torch's operator, as if these tensors were on a GPU."""
    from lcma.kernels.torch import dispatch
    from lcma.kernels.torch.recipe import ProductRecipe

    def request_of(a, b, precision, **more):
        return Request(*a.shape, b.shape[1], "int8", device="cuda", precision=precision, **more)

    monkeypatch.setattr(dispatch, "index_of", lambda device: 0)
    monkeypatch.setattr(dispatch, "require_device", lambda index: None)
    monkeypatch.setattr(dispatch, "request_of", request_of)
    a, b = drawn(24, 40), drawn(40, 56)
    for recipe in ("auto;max_abs=31", "auto@int8;max_abs=31"):
        assert torch.equal(dispatch.run(ProductRecipe.parse(recipe), a, b), exactly(a, b))
    batch = dispatch.run(ProductRecipe.parse("auto;max_abs=31"), a.view(2, 12, 40), b)
    assert torch.equal(batch, exactly(a, b).view(2, 12, 56))
    refuses(r"state the largest magnitude of the entries", dispatch.run, ProductRecipe(), a, b)
    refuses("int8 and vendor, without a scheme", dispatch.run, ProductRecipe.parse("strassen;max_abs=31"), a, b)


def test_tiles_follow_rows_and_the_gpu(monkeypatch):
    gpu = torch.device("cuda", 0)
    for capability, tile in (((9, 0), int8.TILE), ((8, 0), int8.SMALL_TILE)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, found=capability: found)
        assert int8.tile_for(4096, gpu) == tile
        assert int8.tile_for(64, gpu) == int8.SMALL_TILE

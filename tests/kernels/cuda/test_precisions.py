"""Products by float16, in e4m3 and of int8, without a GPU: rounding, plain torch, plans and their reasons."""

import re
from functools import partial

import numpy as np
import pytest
import torch

import lcma
from lcma.kernels.cuda import fp8, int8
from lcma.kernels.cuda.fp8_naive import FLOOR, LARGEST, decode, encode, fp8_product, quantise_blocks, quantise_rows
from lcma.kernels.cuda.int8 import BY_KERNEL, BY_VENDOR, BY_VENDOR_IN_PLACE, vendor_operand
from lcma.kernels.cuda.packed_product import packed_executor
from lcma.kernels.dense import packed
from lcma.kernels.planning.strategy import Candidate
from lcma.kernels.plans.families import strategies
from lcma.kernels.request import Layout, Request
from lcma.workbench.explanation import explanation

from ...refusal import refuses
from ..cases import each
from ..gpu import H200, decision
from .integers import drawn as any_int8
from .integers import exactly

SCALED_HALF = strategies("cuda")["dense", "scaled-half"]
OWN = {"tf32": "scaled-half", "fp32-accurate": "split", "fp8": "fp8-vendor"}
"""The strategy of a precision, for which no other arithmetic asks."""


def names_of(plan):
    return [stage.name for stage in plan.stages]


@pytest.mark.parametrize("dtype", [*OWN, "float32", "bfloat16", "float16", "float64"])
def test_only_one_precision_asks_for_each(dtype):
    found = decision(dtype, 8192)
    assert found.plan.candidate.strategy == OWN.get(dtype, found.plan.candidate.strategy)
    assert {one.candidate.strategy for one in found.proposals} & {*OWN.values()} == {*OWN.values()} & {OWN.get(dtype)}
    assert found.baseline.candidate.strategy == "vendor"
    assert dtype != "fp32-accurate" or found.gain > 2


@each("dtype, sizes, limits, strategy, reason", __file__, "choices")
def test_sizes_and_limits_choose(dtype, sizes, limits, strategy, reason):
    found = decision(dtype, *sizes, **limits)
    assert found.plan.candidate.strategy == strategy
    assert re.search(reason, found.reason)


@pytest.mark.parametrize("sizes", [(8192,) * 3, (16384, 4096, 11264), (20480, 7168, 2048)])
def test_tf32_is_multiplied_by_scaled_float16(sizes):
    chosen = decision("tf32", *sizes)
    assert str(chosen.plan.candidate) == "scaled-half"
    assert chosen.gain > 1.08
    assert "scaled-half" in str(explanation(chosen, strategies("cuda")))
    assert [name.split()[0] for name in names_of(chosen.plan)] == ["Scale", "Scale", "product", "Check"]
    assert chosen.plan.workspace > 2 * (sizes[0] * sizes[1] + sizes[1] * sizes[2])


@each("sizes, limits, reason", __file__, "scaled_half")
def test_refusals_give_the_reason(sizes, limits, reason):
    request = Request(*sizes, device="cuda", precision="tf32", **limits)
    assert reason in SCALED_HALF.can_run(Candidate("dense", "scaled-half"), request, H200)
    assert decision("tf32", *sizes, **limits).plan.candidate.strategy != "scaled-half"


@pytest.mark.parametrize(("precision", "dtype"), [("fp32-accurate", "float32"), ("fp8", "bfloat16")])
def test_a_processor_multiplies_as_without_a_precision(precision, dtype):
    a = torch.ones(4, 4, dtype=getattr(torch, dtype))
    assert torch.equal(lcma.matmul(a, a, precision=precision), a @ a)


@pytest.mark.parametrize(
    ("dtype", "sizes", "stage"),
    [("tf32", (4096, 8192, 8192), "Scale B"), *(("fp8", (rows, 4096, 11008), "Quantise B") for rows in (16, 1024))],
)
def test_a_static_b_is_scaled_once(dtype, sizes, stage):
    fresh, static = (decision(dtype, *sizes, strategy=OWN[dtype], static=one).plan for one in (None, "B"))
    assert [name for name in names_of(fresh) if name != stage] == names_of(static) != names_of(fresh)
    assert 0 < static.seconds < fresh.seconds
    assert static.workspace >= sizes[1] * sizes[2]


def test_gpus_without_e4m3_or_block_scales_fall_back_with_the_reason(monkeypatch):
    only = "torch's scaled_mm has block scales on compute capability 9.x only, and this GPU has {}.{}"
    for capability, cuda, wanted in (
        ((9, 0), "13.0", None),
        ((9, 0), "12.8", "from CUDA 12.9 on"),
        ((8, 9), "13.0", only.format(8, 9)),
        ((8, 0), "13.0", only.format(8, 0)),
    ):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, found=capability: found)
        monkeypatch.setattr(torch.version, "cuda", cuda)
        reason = fp8.missing_block_scales.__wrapped__(torch.device("cuda", 0))
        assert reason == wanted or wanted in reason
    monkeypatch.setattr(packed, "on_current_gpu", lambda missing: reason)
    found = decision("fp8", 8192)
    assert (found.is_baseline, found.reason) == (True, reason)
    refuses(r"compute capability 9\.x only, and this GPU has 8\.0", decision, "fp8", 8192, strategy="fp8-vendor")


def test_torch_accepts_the_layouts_of_the_vendors_product():
    """By the checks of torch's own operator, on tensors without data."""
    scales = torch.empty((6, 20), device="meta")
    a = fp8.Quantised(torch.empty((20, 768), dtype=torch.float8_e4m3fn, device="meta"), scales)
    packed = torch.empty(fp8.packed_bytes(768, 256), dtype=torch.uint8, device="meta")
    b = fp8.unpacked(packed, 768, 256)
    found = fp8.multiply_by_vendor(a, b)
    for out in (torch.empty_like(found), torch.empty((256, 20), dtype=torch.bfloat16, device="meta").t()):
        assert fp8.multiply_by_vendor(a, b, out) is out
    assert (tuple(found.shape), found.dtype) == ((20, 256), torch.bfloat16)


def test_fp8_is_for_inference():
    a = torch.ones(4, 4, dtype=torch.bfloat16, requires_grad=True)
    refuses("products in fp8 have no gradient", lcma.matmul, a, a, precision="fp8")
    with torch.no_grad():
        assert torch.equal(lcma.matmul(a, a, precision="fp8"), a @ a)
    from lcma.kernels.torch.layers import FastLinear

    layer = FastLinear(8, 4, precision="fp8").bfloat16()
    assert "precision=fp8" in repr(layer)
    x = torch.ones(3, 8, dtype=torch.bfloat16)
    refuses("products in fp8 have no gradient", layer, x)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))
    shared = FastLinear.from_linear(torch.nn.Linear(8, 4), precision="fp8")
    assert shared.recipe == "auto;precision=fp8"


pytest.importorskip("torch")

EVERY = np.arange(256, dtype=np.uint8)


def by_definition(codes):
    """The values of codes by their bits, sign, exponent and mantissa; NaN where all bits but the sign are set."""
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    values = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10.0))
    return np.where(codes & 0x7F == 0x7F, np.nan, values * np.where(codes & 0x80, -1.0, 1.0)).astype(np.float32)


def nearest(values):
    """The codes whose values are nearest, of two that are equally near the even one."""
    known = by_definition(EVERY[:0x7F]).astype(np.float64)
    far = np.abs(known - np.minimum(np.abs(values.astype(np.float64)), LARGEST)[:, None])
    least = far.min(1, keepdims=True)
    codes = np.argmin(np.where(far == least, EVERY[:0x7F] & 1, 2), 1)
    return (codes | np.where(np.signbit(values), 0x80, 0)).astype(np.uint8)


def test_e4m3_is_rounded_to_the_nearest_by_the_definition_of_its_values():
    values = by_definition(EVERY.astype(int))
    np.testing.assert_array_equal(decode(EVERY), values)
    numbers = ~np.isnan(values)
    assert numbers.sum() == 254
    np.testing.assert_array_equal(encode(values[numbers]), EVERY[numbers])
    values = np.sort(decode(EVERY[:0x7F]))
    ties = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(np.float32)
    near = np.concatenate([ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(0))])
    near = np.concatenate([near, -near])
    np.testing.assert_array_equal(encode(near), nearest(near))
    rng = np.random.default_rng(0)
    words = rng.integers(0, 1 << 32, 20_000, dtype=np.uint32).view(np.float32)
    spread = (rng.standard_normal(20_000) * np.exp2(rng.uniform(-12, 10, 20_000))).astype(np.float32)
    for values in (words[np.isfinite(words)], spread):
        np.testing.assert_array_equal(encode(values), nearest(values))
    values = np.array([np.inf, -np.inf, 1e9, 464.0, 465.0, np.nan], np.float32)
    np.testing.assert_array_equal(decode(encode(values)), np.float32([448, -448, 448, 448, 448, np.nan]))


def test_scales_of_rows_and_of_blocks_and_entries_that_are_not_finite():
    a = np.zeros((2, 130), np.float32)
    a[0, 5], a[0, 129], a[1, 128] = -896.0, 2.0**-130, 7.0
    bits, scales = quantise_rows(a)
    np.testing.assert_array_equal(scales, np.float32([[2.0, FLOOR / LARGEST], [1.0, 7.0 / 448]]))
    assert decode(bits)[0, 5] == -448
    assert decode(bits)[1, 128] == 448
    _, scales = quantise_blocks(a.T)
    np.testing.assert_array_equal(scales, np.float32([[2.0], [7.0 / 448]]))
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((5, 200)).astype(np.float32), rng.standard_normal((200, 9)).astype(np.float32)
    for matrix, place in ((a, (2, 3)), (b, (150, 7))):
        matrix[place] = 0.0  # not the largest of its block, so that scales stay as they are
    clean = fp8_product(a, b)
    a[2, 3], b[150, 7] = np.inf, np.nan
    found = fp8_product(a, b)
    touched = np.zeros(found.shape, bool)
    touched[2], touched[:, 7] = True, True
    np.testing.assert_array_equal(np.isfinite(found), ~touched)
    np.testing.assert_array_equal(found[~touched], clean[~touched])
    assert (fp8_product(np.zeros((3, 130), np.float32), np.ones((130, 4), np.float32)) == 0).all()


@pytest.mark.parametrize("sizes", [(5, 300, 7), (1, 128, 128), (3, 1, 200)])
def test_the_product_is_near_that_of_the_operands(sizes):
    m, k, n = sizes
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    a[0] *= 1e20  # each row has scales of its own
    wide = np.abs(a).astype(np.float64) @ np.abs(b)
    # Two roundings of a relative error of 2^-4 each.
    assert (np.abs(fp8_product(a, b) - a.astype(np.float64) @ b) <= 2.0**-3 * 1.1 * wide).all()


def int8_request(*sizes, max_abs=31, **more):
    m, k, n = sizes * 3 if len(sizes) == 1 else sizes
    return Request(m, k, n, "int8", device="cuda", max_abs=max_abs, **more)


drawn = partial(any_int8, most=31)


@pytest.mark.parametrize("method", [BY_VENDOR, BY_VENDOR_IN_PLACE], ids=["copied", "in place"])
@pytest.mark.parametrize("sizes", [(40, 64, 24), (5, 61, 23), (17, 8, 1), (1, 1, 1)])
def test_the_vendors_product_is_padded_where_its_rules_need_it(sizes, method):
    m, k, n = sizes
    a, b = drawn(m, k), drawn(k, n)
    executor = packed_executor(int8_request(m, k, n), method, 0)
    out = torch.full((n, m), -1, dtype=torch.int32).t()
    assert executor.run(a, b, out) is out
    for right in (b, b.t().contiguous().t(), executor.prepare(b)):
        assert torch.equal(executor.run(a, right), exactly(a, b))


def test_the_vendors_product_gets_b_by_columns_and_ours_has_batches():
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
    request = int8_request(19, 37, 29, max_abs=15, batch_a=(2, 1), batch_b=(3,))
    a, b = drawn(2, 1, 19, 37, most=15), drawn(3, 37, 29, most=15)
    found = packed_executor(request, BY_KERNEL, 0).run(a, b)
    assert found.dtype == torch.int32
    assert torch.equal(found, exactly(a, b))


@pytest.mark.parametrize("sizes", [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_empty_products_are_zeros(sizes):
    m, k, n = sizes
    executor = packed_executor(int8_request(m, k, n), BY_KERNEL, 0)
    assert torch.equal(executor.run(drawn(m, k), drawn(k, n)), torch.zeros(m, n, dtype=torch.int32))


def test_operands_are_compared_with_the_plan_and_the_stated_magnitude():
    a, b = drawn(20, 32), drawn(32, 16)
    a[3, 4], b[1, 2] = 32, -33
    for method in (BY_VENDOR, BY_KERNEL):
        executor = packed_executor(int8_request(20, 32, 16), method, 0)
        refuses("a or b has an entry of magnitude 33, but max_abs=31 was stated; state 33", executor.run, a, b)
        refuses("b has an entry of magnitude 33", executor.prepare, b)
        refuses("a has an entry of magnitude 32", executor.run, a, executor.prepare(b.clamp(-31, 31)))
    turned = b.mT.contiguous().mT
    refuses("b has an entry of magnitude 33", packed_executor(int8_request(20, 32, 16), BY_VENDOR, 0).prepare, turned)
    whole = packed_executor(int8_request(20, 32, 16, max_abs=128), BY_KERNEL, 0)
    a[0, 0] = -128
    assert torch.equal(whole.run(a, b), exactly(a, b))
    executor = packed_executor(int8_request(20, 32, 16), BY_VENDOR, 0)
    a, b, narrow = drawn(20, 32), drawn(32, 16), torch.empty(20, 16, dtype=torch.int8)
    refuses(r"for int8 tensors of the shapes \(20, 32\) and \(32, 16\)", executor.run, a.int(), b.int())
    refuses(r"out must be a tensor of shape \(20, 16\) and dtype torch.int32", executor.run, a, b, narrow)


int8_plan = partial(decision, "int8", max_abs=31)


def test_auto_chooses_between_the_products_of_int8_and_how_they_take_b():
    by_columns = (Layout.ROWS, Layout.COLUMNS, Layout.ROWS)
    assert int8_plan(2048, layouts=by_columns).is_baseline
    assert int8_plan(2048).is_baseline  # ours waits longer for the host
    assert str(int8_plan(4096, layouts=by_columns).plan.candidate) == "int8"
    chosen = int8_plan(8192)
    assert str(chosen.plan.candidate) == "int8"
    assert names_of(chosen.plan) == ["Check the range", "Copy B", "1 products 8192x8192x8192 in int8"]
    assert names_of(chosen.baseline) == names_of(chosen.plan)
    static, columns, batched = (
        int8_plan(8192, max_abs=128, strategy="int8", **more).plan
        for more in ({"static": "B"}, {"layouts": by_columns}, {"static": "B", "batch_a": (4,), "batch_b": (4,)})
    )
    assert names_of(static) == ["1 products 8192x8192x8192 in int8"]
    assert columns.seconds == static.seconds
    assert batched.seconds == pytest.approx(4 * static.seconds, rel=0.01)
    assert int8_plan(64, 1 << 20, 64, max_abs=45).seconds > 0


def test_plans_of_the_vendors_product_of_int8():
    plan_of = partial(int8_plan, max_abs=128, strategy="vendor")
    short, prepared = plan_of(64).plan, plan_of(64, static="B").plan
    assert names_of(short) == ["1 products 64x64x64 in int8", "Wait for the host"]
    least = plan_of(4096, max_workspace=4096**2 - 1).plan
    assert (len(least.stages), least.workspace) == (1, 0)
    assert least.seconds > 5 * plan_of(4096, max_workspace=4096**2).seconds
    a, b = drawn(64, 64), drawn(64, 64)
    for plan in (short, prepared):
        assert torch.equal(plan.build().run(a, b), exactly(a, b))
    assert short.build().prepare(b).sums is b
    assert prepared.build().prepare(b).sums.stride(0) == 1


def test_cpu_tensors_and_fake_ones_are_int32_where_the_range_is_stated(strassen):
    a, b = drawn(40, 64), drawn(64, 24)
    for scheme in ("auto", strassen):
        found = lcma.matmul(a, b, scheme, max_abs=31)
        assert found.dtype == torch.int32
        assert torch.equal(found, exactly(a, b))
    wide = lcma.matmul(a.int(), b.int(), max_abs=31)
    assert torch.equal(wide, exactly(a, b))
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        a, b = torch.empty(8, 16, dtype=torch.int8), torch.empty(16, 4, dtype=torch.int8)
        assert torch.ops.lcma.bilinear_mm(a, b, "auto;max_abs=3").dtype == torch.int32
        assert torch.ops.lcma.bilinear_mm(a, b, "auto").dtype == torch.int8


def test_tensors_on_a_gpu_are_planned_by_their_range_and_tiles_by_rows(dispatched, monkeypatch):
    a, b = drawn(24, 40), drawn(40, 56)
    for recipe in ("auto;max_abs=31", "auto@int8;max_abs=31"):
        assert torch.equal(dispatched(recipe, a, b), exactly(a, b))
    assert torch.equal(dispatched("auto;max_abs=31", a.view(2, 12, 40), b), exactly(a, b).view(2, 12, 56))
    refuses("state the largest magnitude of the entries", dispatched, "auto", a, b)
    refuses("int8 and vendor, without a scheme", dispatched, "strassen;max_abs=31", a, b)
    gpu = torch.device("cuda", 0)
    for capability, tile in (((9, 0), int8.TILE), ((8, 0), int8.SMALL_TILE)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, found=capability: found)
        assert int8.tile_for(4096, gpu) == tile
        assert int8.tile_for(64, gpu) == int8.SMALL_TILE

"""Run with TRITON_INTERPRET=1 by test_triton_kernels.py: products in e4m3 and of int8 on CPU tensors."""

from functools import partial

import numpy as np
import pytest
import torch

from lcma.kernels.cuda import fp8, fp8_naive
from lcma.kernels.cuda.int8 import BY_KERNEL, launch_int8, multiply, packed_columns
from lcma.kernels.cuda.packed_product import packed_executor
from lcma.kernels.cuda.tiles import Tile
from lcma.kernels.dense import packed as strategy
from lcma.kernels.precision import fields_of
from lcma.kernels.request import Request
from lcma.kernels.torch import dispatch
from lcma.kernels.torch.recipe import ProductRecipe

from ..canvases import written
from .integers import drawn as any_int8
from .integers import exactly

SIZES = [(40, 300, 150), (1, 128, 128), (33, 5, 200), (64, 256, 64)]
DTYPES = [torch.float16, torch.float32]


def operands(m, k, n, dtype):
    torch.manual_seed(m + k + n)
    a, b = torch.randn(m, k) * torch.exp2(torch.randint(-4, 5, (m, 1)).float()), torch.randn(k, n)
    a[0, 0], b[0, 0] = 0.0, 0.0
    a[:, k // 2] = 0.0
    return a.to(dtype), b.to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES)
def test_operands_are_quantised_to_the_same_bits(sizes, dtype):
    m, k, n = sizes
    a, b = operands(m, k, n, dtype)
    bits, scales = fp8_naive.quantise_rows(a.numpy())
    found = fp8.quantised_rows(a)
    np.testing.assert_array_equal(found.bits.view(torch.uint8)[:, :k].numpy(), bits)
    assert not found.bits.view(torch.uint8)[:, k:].any()
    np.testing.assert_array_equal(found.scales.t().numpy(), scales)
    bits, scales = fp8_naive.quantise_blocks(b.numpy())
    found = fp8.unpacked(fp8.packed_columns(b), k, n)
    np.testing.assert_array_equal(found.bits.view(torch.uint8)[:, :k].t().numpy(), bits)
    assert not found.bits.view(torch.uint8)[:, k:].any()
    np.testing.assert_array_equal(found.scales.t()[: scales.shape[0]].numpy(), scales)


def test_operands_of_any_strides_and_of_zeros():
    a, b = operands(40, 300, 150, torch.float32)
    for quantised in (lambda x: fp8.quantised_rows(x).bits.view(torch.uint8), lambda x: fp8.packed_columns(x.mT)):
        for x in (a, b.mT):
            assert torch.equal(quantised(x.mT.contiguous().mT), quantised(x.contiguous()))
    assert (fp8.quantised_rows(torch.zeros(20, 130)).scales == 1).all()


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_an_entry_that_is_not_finite_becomes_nan_and_changes_no_other(bad):
    a, _ = operands(40, 300, 150, torch.float32)
    a[2, 150] = 0.0
    clean = fp8.quantised_rows(a)
    a[2, 150] = bad
    found = fp8.quantised_rows(a)
    differs = found.bits.view(torch.uint8) != clean.bits.view(torch.uint8)
    assert differs.nonzero().tolist() == [[2, 150]]
    assert found.bits.float()[2, 150].isnan()
    assert torch.equal(found.scales, clean.scales)


def product_of_bits(a, b, out):
    """In place of torch's own product, which is a GPU's: the reference's."""
    n, blocks = out.shape[1], len(a.scales)
    left = a.bits.view(torch.uint8).numpy(), a.scales.t().numpy()
    right = b.bits.view(torch.uint8).t().numpy(), b.scales.t()[:blocks].numpy()
    out.copy_(torch.from_numpy(fp8_naive.scaled_product(left, (right[0][:, :n], right[1]))))


@pytest.fixture
def by_reference(monkeypatch):
    monkeypatch.setattr(fp8, "multiply_by_vendor", product_of_bits)


def executor(m, k, n):
    return packed_executor(Request(m, k, n, **fields_of("fp8"), device="cuda"), fp8.BY_VENDOR, 0)


def test_executors_take_prepared_operands(by_reference):
    a, b = operands(10, 130, 20, torch.bfloat16)
    runner = executor(10, 130, 20)
    prepared = runner.prepare(b)
    assert runner.fits(prepared.sums)
    assert not executor(10, 260, 20).fits(prepared.sums)
    found = runner.run(a, prepared)
    assert torch.equal(found, runner.run(a, b))
    expected = fp8_naive.fp8_product(a.float().numpy(), b.float().numpy())
    assert np.linalg.norm(found.float().numpy() - expected) / np.linalg.norm(expected) <= 2e-3


def test_a_packed_operand_is_read_instead_of_b(monkeypatch, by_reference, dispatched):
    monkeypatch.setattr(strategy, "vendor_reason", lambda m, k, n: None)
    a, b = operands(6, 130, 20, torch.bfloat16)
    text = "auto@fp8-vendor;precision=fp8"
    packing, packed = dispatch.pack(ProductRecipe.parse(text), b, 16)
    assert (str(packing), packed.dtype) == (text, torch.uint8)
    expected = dispatched(text, a, b)
    assert torch.equal(expected, executor(6, 130, 20).run(a, b))
    assert torch.equal(dispatched(text, a, torch.zeros_like(b), packed=packed), expected)
    batch = dispatched(text, a.view(2, 3, 130), b, packed=packed)
    assert torch.equal(batch, expected.view(2, 3, 20))


TILE = Tile(32, 64, 64, 4, 3)


drawn = partial(any_int8, most=127)


@pytest.mark.parametrize("sizes", [(40, 64, 70), (33, 200, 65), (32, 7, 64), (1, 130, 1)])
def test_products_are_exact_within_their_tensor(sizes):
    m, k, n = sizes
    left, right = drawn(m, k), drawn(n, k)
    found = written(lambda out: launch_int8(left, right, out, TILE), (m, n), torch.int32)
    assert torch.equal(found, exactly(left, right.T))


@pytest.mark.parametrize("order", ["rows", "columns"])
def test_products_are_exact_at_the_end_of_the_range(order):
    m, k, n = 21, 45, 37
    a, b = drawn(m, k), drawn(k, n)
    if order == "columns":
        a, b = (x.mT.contiguous().mT for x in (a, b))
    executor = packed_executor(Request(m, k, n, "int8", device="cuda", max_abs=127), BY_KERNEL, 0)
    assert torch.equal(written(partial(executor.run, a, b), (m, n), torch.int32), exactly(a, b))
    prepared = executor.prepare(b)
    assert torch.equal(executor.run(a, prepared), exactly(a, b))


def test_operands_in_whole_segments_are_not_copied():
    a, b = drawn(20, 64), drawn(48, 64).mT
    assert packed_columns(b).data_ptr() == b.data_ptr()
    out = torch.empty((20, 48), dtype=torch.int32)
    multiply(a, packed_columns(b), out)
    assert torch.equal(out, exactly(a, b))

"""Run with TRITON_INTERPRET=1 by test_triton_kernels.py: products in e4m3 on CPU tensors, against numpy."""

import numpy as np
import pytest
import torch

from lcma.errors import PlanError
from lcma.kernels.cuda import fp8, fp8_naive
from lcma.kernels.cuda.packed_product import packed_executor
from lcma.kernels.cuda.tiles import Tile
from lcma.kernels.precision import fields_of
from lcma.kernels.request import Request

SIZES = [(40, 300, 150), (1, 128, 128), (33, 5, 200), (64, 256, 64)]
SMALL_TILE = Tile(32, 64, 128, 4, 2)
DTYPES = [torch.float16, torch.float32]


def operands(m, k, n, dtype):
    torch.manual_seed(m + k + n)
    a, b = torch.randn(m, k) * torch.exp2(torch.randint(-4, 5, (m, 1)).float()), torch.randn(k, n)
    a[0, 0], b[0, 0] = 0.0, 0.0
    a[:, k // 2] = 0.0
    return a.to(dtype), b.to(dtype)


def product(a, b, out=None):
    m, k, n = *a.shape, b.shape[1]
    out = torch.full((m, n), torch.nan, dtype=a.dtype) if out is None else out
    right = fp8.unpacked(fp8.packed_columns(b), k, n)
    fp8.multiply_quantised(fp8.quantised_rows(a), right, out, SMALL_TILE)
    return out


def reference(a, b):
    return fp8_naive.fp8_product(a.numpy(), b.numpy())


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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES)
def test_products_are_those_of_the_reference(sizes, dtype):
    a, b = operands(*sizes, dtype)
    wide = (a.double().abs() @ b.double().abs()).numpy()
    # Sums of 128 products in another order, in float32; and one rounding to the dtype of C.
    allowed = (128 * 2.0**-24 + torch.finfo(dtype).eps) * wide
    assert (np.abs(product(a, b).double().numpy() - reference(a, b)) <= allowed).all()


def test_operands_and_results_of_any_strides():
    a, b = operands(40, 300, 150, torch.float32)
    plain = product(a, b)
    turned = [x.mT.contiguous().mT for x in (a, b)]
    out = torch.full((150, 40), torch.nan).mT
    assert torch.equal(product(*turned, out), plain)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_only_what_depends_on_a_non_finite_entry_is_not_finite(bad):
    a, b = operands(40, 300, 150, torch.float32)
    b[150, 7] = 0.0
    clean = product(a, b)
    a[2, 150], b[150, 7] = bad, bad
    found = product(a, b)
    touched = torch.zeros(found.shape, dtype=torch.bool)
    touched[2], touched[:, 7] = True, True
    assert torch.equal(found.isfinite(), ~touched)
    assert torch.equal(found[~touched], clean[~touched])


def test_zeros_stay_zeros():
    a, b = torch.zeros(20, 130), torch.randn(130, 40)
    assert (product(a, b) == 0).all()
    assert (fp8.quantised_rows(a).scales == 1).all()


def quantised_by_caller(a, b):
    """A and B as a caller has them quantised, by the reference."""
    found = []
    for bits, scales in (fp8_naive.quantise_rows(a.numpy()), fp8_naive.quantise_blocks(b.numpy())):
        found += [torch.from_numpy(bits).view(torch.float8_e4m3fn), torch.from_numpy(scales)]
    return found


def test_operands_that_a_caller_quantised():
    a, b = operands(40, 300, 150, torch.float32)
    a_bits, a_scales, b_bits, b_scales = quantised_by_caller(a, b)
    out = torch.full((40, 150), torch.nan)
    left, right = fp8.rows_given(a_bits, a_scales), fp8.columns_given(b_bits, b_scales)
    fp8.multiply_quantised(left, right, out, SMALL_TILE)
    assert torch.equal(out, product(a, b))


@pytest.mark.parametrize("bad", [0.0, -1.0, torch.nan, torch.inf])
def test_scales_that_are_not_positive_and_finite_are_refused(bad):
    a_bits, a_scales, b_bits, b_scales = quantised_by_caller(*operands(8, 200, 8, torch.float32))
    a_scales[3, 1], b_scales[1, 0] = bad, bad
    with pytest.raises(PlanError, match="scales of A must be positive finite numbers"):
        fp8.rows_given(a_bits, a_scales)
    with pytest.raises(PlanError, match="scales of B must be positive finite numbers"):
        fp8.columns_given(b_bits, b_scales)


def test_scales_of_another_shape_or_dtype_are_refused():
    a_bits, a_scales, b_bits, b_scales = quantised_by_caller(*operands(8, 200, 8, torch.float32))
    with pytest.raises(PlanError, match=r"must have the shape \(2, 1\), one for 128x128, not \(1, 2\)"):
        fp8.columns_given(b_bits, b_scales.t())
    with pytest.raises(PlanError, match="float8_e4m3fn with scales of float32"):
        fp8.rows_given(a_bits.float(), a_scales)


def executor(m, k, n, dtype):
    return packed_executor(Request(m, k, n, **fields_of(dtype), device="cuda"), fp8.METHODS["fp8-blocked"], 0)


def test_executors_take_prepared_operands():
    a, b = operands(10, 130, 20, torch.float16)
    runner = executor(10, 130, 20, "fp8-float16")
    prepared = runner.prepare(b)
    assert runner.fits(prepared.sums)
    assert not executor(10, 260, 20, "fp8-float16").fits(prepared.sums)
    found = runner.run(a, prepared)
    assert torch.equal(found, runner.run(a, b))
    error = np.linalg.norm(found.float().numpy() - reference(a, b)) / np.linalg.norm(reference(a, b))
    assert error <= 2e-3


def test_executors_write_over_an_operand():
    a, b = operands(48, 48, 48, torch.float32)
    runner = executor(48, 48, 48, "fp8-float32")
    expected = runner.run(a, b)
    for over in (a, b):
        kept = over.clone()
        assert torch.equal(runner.run(a, b, over), expected)
        over.copy_(kept)


def test_executors_check_their_tensors():
    runner = executor(8, 8, 8, "fp8-float16")
    half = torch.zeros(8, 8, dtype=torch.float16)
    with pytest.raises(PlanError, match="plan again"):
        runner.run(torch.zeros(8, 8), torch.zeros(8, 8))
    with pytest.raises(PlanError, match="out must be"):
        runner.run(half, half, torch.zeros(8, 8))


def test_a_packed_operand_is_read_instead_of_b(monkeypatch):
    """The dispatch of torch's operator, as if these tensors were on a GPU."""
    from lcma.kernels.torch import dispatch
    from lcma.kernels.torch.recipe import ProductRecipe

    def request_of(a, b, precision, **more):
        return Request(*a.shape, b.shape[1], "float16", device="cuda", precision=precision, **more)

    monkeypatch.setattr(dispatch, "index_of", lambda device: 0)
    monkeypatch.setattr(dispatch, "request_of", request_of)
    a, b = operands(6, 130, 20, torch.float16)
    recipe = ProductRecipe.parse("auto@fp8-blocked;precision=fp8")
    packing, packed = dispatch.pack(recipe, b, 16)
    assert (packing, packed.dtype) == (recipe, torch.uint8)
    expected = dispatch.run(recipe, a, b)
    assert torch.equal(expected, executor(6, 130, 20, "fp8-float16").run(a, b))
    assert torch.equal(dispatch.run(recipe, a, torch.zeros_like(b), packed=packed), expected)
    batch = dispatch.run(recipe, a.view(2, 3, 130), b, packed=packed)
    assert torch.equal(batch, expected.view(2, 3, 20))

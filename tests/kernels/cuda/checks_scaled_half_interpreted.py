"""Run with TRITON_INTERPRET=1 by test_triton_kernels.py: products by scaled float16 on CPU tensors."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lcma.errors import PlanError
from lcma.kernels.cuda import scaled_half, scaled_half_naive
from lcma.kernels.cuda.packed_product import packed_executor
from lcma.kernels.cuda.scaled_half import FACTOR, ROUNDING, SCALED_HALF, scaled_half_product
from lcma.kernels.cuda.tiles import Tile
from lcma.kernels.request import Request
from lcma.kernels.torch import dispatch
from lcma.kernels.torch.recipe import ProductRecipe

TILE, PLAIN = Tile(32, 32, 16, 4, 2), Tile(16, 16, 16, 4, 2)
SIZES = [(40, 72, 56), (33, 47, 61), (1, 5, 1), (64, 64, 64)]

U = 2.0**-11
"""Unit roundoff of tf32 and of float16."""


def spread(count, most=100):
    return torch.exp2(torch.linspace(-most, most, count, dtype=torch.float64).round())


def operands(m, k, n, kind):
    """A and B in float32: rows, columns, or one entry of either from 2^-100 to 2^100; results within 2^+-120."""
    a, b = torch.randn(m, k, dtype=torch.float64), torch.randn(k, n, dtype=torch.float64)
    if kind == "rows":
        a *= spread(m)[:, None]
    elif kind == "columns":
        b *= spread(n)[None, :]
    elif kind == "both":
        a, b = a * spread(m, 60)[:, None], b * spread(n, 60)[None, :]
    elif kind == "outlier of a":
        a[m // 4, k // 2] = 2.0**100
    elif kind == "outlier of b":
        b[k // 2, n // 4] = -(2.0**100)
    elif kind == "small":
        a *= 2.0**-100
    elif kind == "subnormal":
        a *= 2.0**-135
        b *= 2.0**40
    elif kind == "dead":
        a[:, ::3], b[::5], a[1::7], b[:, 2::5] = 0.0, 0.0, 0.0, 0.0
    return a.float(), b.float()


def scales(x, axis):
    """Powers of two that scale the largest magnitudes of rows (0) or columns (1) to below 1."""
    largest = x.double().abs().amax(1 - axis, keepdim=True)
    return torch.where(largest > 0, torch.exp2(-torch.ceil(torch.log2(largest.clamp_min(2.0**-400)))), 1.0)


def errors(c, a, b):
    """The largest error of a row, and of a column, of C relative to |A| |B|, all lines scaled as the check has them."""
    down, across = scales(a, 0), scales(b, 1)
    exact = (a.double() @ b.double()) * down * across
    wide = (a.double().abs() * down) @ (b.double().abs() * across)
    lost = (c.double() * down * across - exact).abs()
    return [float((lost.sum(axis) / wide.sum(axis).clamp_min(1e-300)).nan_to_num().max()) for axis in (0, 1)]


def product(a, b, out=None, right=None):
    """The product, and whether the check found that it may have lost too much."""
    out = torch.full((a.shape[0], b.shape[1]), torch.nan) if out is None else out
    found = []
    plain = scaled_half.multiply_plain

    def noting(flag, *others):
        found.append(bool(flag))
        plain(flag, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scaled_half, "multiply_plain", noting)
        scaled_half_product(a, b, out, right, TILE, PLAIN)
    return out, found[0]


@pytest.mark.parametrize("kind", ["plain", "rows", "columns", "both", "small"])
@pytest.mark.parametrize("sizes", SIZES)
def test_rows_and_columns_of_any_scale_are_rounded_as_in_tf32(sizes, kind):
    torch.manual_seed(0)
    a, b = operands(*sizes, kind)
    c, again = product(a, b)
    assert not again
    assert max(errors(c, a, b)) <= 2 * U * FACTOR


@pytest.mark.parametrize("kind", ["outlier of a", "outlier of b"])
@pytest.mark.parametrize("sizes", SIZES)
def test_single_large_entries_keep_the_bound(sizes, kind):
    torch.manual_seed(1)
    a, b = operands(*sizes, kind)
    c, _ = product(a, b)
    assert max(errors(c, a, b)) <= 2 * U * FACTOR


def test_dead_columns_and_rows_are_no_loss():
    torch.manual_seed(2)
    a, b = operands(40, 72, 56, "dead")
    c, again = product(a, b)
    assert not again
    assert max(errors(c, a, b)) <= 2 * U * FACTOR
    assert (c[1::7] == 0).all()


def test_entries_that_float16_would_lose_are_multiplied_in_tf32():
    """The first rows of A are small where B is large, but other rows are not: columns of A are alike."""
    torch.manual_seed(3)
    a, b = torch.randn(40, 72), torch.randn(72, 56)
    a[:20, 36:] *= 2.0**-60
    b[:36] *= 2.0**-60
    c, again = product(a, b)
    assert again
    assert max(errors(c, a, b)) <= 2 * U


def test_rows_below_the_normal_numbers_are_multiplied_in_tf32():
    torch.manual_seed(3)
    a, b = operands(40, 72, 56, "subnormal")
    c, again = product(a, b)
    assert again
    assert max(errors(c, a, b)) <= 2.0**-4  # a subnormal number has fewer bits


def test_a_spread_along_k_is_multiplied_in_tf32():
    torch.manual_seed(4)
    a, b = torch.randn(40, 72) * spread(72).float(), torch.randn(72, 56) / spread(72).float()[:, None]
    c, again = product(a, b)
    assert again
    assert max(errors(c, a, b)) <= 2 * U


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # infinity less infinity, by numpy
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("of_a", [True, False])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_entries_that_are_not_finite_change_their_row_or_column_only(bad, of_a):
    torch.manual_seed(5)
    a, b = operands(40, 72, 56, "plain")
    a[0], b[:, 0] = a[0] * 2.0**20, b[:, 0] * 2.0**-20
    (a if of_a else b)[3, 4] = bad
    c, again = product(a, b)
    assert again
    wanted = a.double() @ b.double()
    finite = torch.isfinite(wanted)
    assert torch.equal(torch.isfinite(c), finite)
    assert torch.equal(torch.isnan(c), torch.isnan(wanted))
    assert torch.equal(c[torch.isinf(c)].double(), wanted[torch.isinf(wanted)])
    assert torch.allclose(c[finite].double(), wanted[finite], rtol=0.05, atol=0.05 * float(wanted[finite].abs().max()))


@pytest.mark.parametrize("of_a", [False, True])
@pytest.mark.parametrize("of_b", [False, True])
def test_operands_of_any_strides(of_a, of_b):
    torch.manual_seed(6)
    a, b = operands(40, 72, 56, "rows")
    a, b = (x.mT.contiguous().mT if turned else x for x, turned in ((a, of_a), (b, of_b)))
    out = torch.full((2 * 56, 2 * 40), torch.nan)
    c, _ = product(a[::1], b, out[::2, ::2].mT)
    assert max(errors(c, a, b)) <= 2 * U * FACTOR
    assert torch.isnan(out[1::2]).all()
    assert torch.isnan(out[:, 1::2]).all()


def test_zeros_stay_zeros():
    for a, b in (
        (torch.zeros(40, 72), torch.randn(72, 56)),
        (torch.randn(40, 72), torch.zeros(72, 56)),
        (torch.zeros(5, 7), torch.zeros(7, 3)),
    ):
        c, again = product(a, b)
        assert (c == 0).all()
        assert not again


@pytest.mark.parametrize("kind", ["plain", "rows", "both", "small", "subnormal", "dead", "outlier of b"])
@pytest.mark.parametrize("axis", [0, 1])
def test_scaled_lines_are_those_of_numpy(kind, axis):
    torch.manual_seed(7)
    x = operands(33, 47, 61, kind)[axis]
    made = scaled_half.scaled_rows(x) if axis == 0 else scaled_half.unpacked(scaled_half.packed(x), *x.shape)
    values, shifts = scaled_half_naive.scale_lines(x.numpy(), axis)
    assert np.array_equal(made.shifts.numpy(), shifts)
    assert np.array_equal(made.values.numpy(), values)
    sizes = np.abs(np.ldexp(x.double().numpy(), np.expand_dims(shifts, 1 - axis)))
    np.testing.assert_allclose(made.sums.numpy(), sizes.sum(1 - axis), rtol=1e-5)
    np.testing.assert_allclose(made.weights.numpy(), sizes.sum(axis), rtol=1e-5)


@pytest.mark.parametrize("kind", ["plain", "rows", "both", "dead", "outlier of a"])
def test_the_product_and_the_check_are_those_of_numpy(kind):
    torch.manual_seed(8)
    a, b = operands(33, 47, 61, kind)
    c, again = product(a, b)
    wanted = scaled_half_naive.scaled_half_product(a.numpy(), b.numpy(), ROUNDING)
    left, right = (scaled_half_naive.scale_lines(x.numpy(), axis)[0] for axis, x in enumerate((a, b)))
    assert again == scaled_half_naive.loses_too_much(left, right, ROUNDING)
    assert max(errors(c, a, b)[0], errors(torch.from_numpy(wanted), a, b)[0]) <= 2 * U * FACTOR
    np.testing.assert_allclose(c.numpy(), wanted, rtol=1e-3, atol=1e-5 * float(np.abs(wanted).max()))


def test_tf32_is_rounded_to_nearest():
    x = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-12, 3.4028235e38, np.inf, 2.0**-140, 0.0], np.float32)
    found = scaled_half_naive.as_tf32(x)
    assert found[:3].tolist() == [1 + 2.0**-10, 1 + 2 * 2.0**-10, -1.0]
    assert np.isfinite(found[3])
    assert found[4] == np.inf
    assert found[6] == 0.0


def test_a_b_that_was_scaled_before_gives_the_same_product():
    torch.manual_seed(9)
    a, b = operands(40, 72, 56, "both")
    executor = packed_executor(Request(40, 72, 56, device="cuda", precision="tf32", static="B"), SCALED_HALF, 0)
    prepared = executor.prepare(b.mT.contiguous().mT)
    assert executor.fits(prepared.sums)
    assert not executor.fits(b)
    assert not executor.fits(prepared.sums[:-1])
    c, _ = product(a, b)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scaled_half_product, "__defaults__", (None, TILE, PLAIN))
        assert torch.equal(executor.run(a, prepared), c)
        assert torch.equal(executor.run(a, b), c)


def test_the_executor_checks_its_tensors_and_writes_over_an_operand():
    executor = packed_executor(Request(48, 48, 48, device="cuda", precision="tf32"), SCALED_HALF, 0)
    with pytest.raises(PlanError, match="plan again"):
        executor.run(torch.zeros(8, 9), torch.zeros(9, 8))
    with pytest.raises(PlanError, match="out must be"):
        executor.run(torch.zeros(48, 48), torch.zeros(48, 48), torch.zeros(48, 49))
    torch.manual_seed(10)
    a, b = operands(48, 48, 48, "plain")
    first = a.clone()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scaled_half_product, "__defaults__", (None, TILE, PLAIN))
        assert executor.run(a, b, out=a) is a
    assert max(errors(a, first, b)) <= 2 * U * FACTOR


def test_a_packed_weight_is_scaled_once(monkeypatch):
    torch.manual_seed(11)
    a, b = operands(40, 72, 56, "plain")
    executor = packed_executor(Request(40, 72, 56, device="cuda", precision="tf32", static="B"), SCALED_HALF, 0)
    monkeypatch.setattr(scaled_half_product, "__defaults__", (None, TILE, PLAIN))
    wanted = executor.run(a, b)
    monkeypatch.setattr(dispatch, "recipe_plan", lambda *_: SimpleNamespace(build=lambda: executor))
    monkeypatch.setattr(dispatch, "recipe_executor", lambda *_: executor)
    monkeypatch.setattr(dispatch, "index_of", lambda _: 0)
    recipe, made = dispatch.pack(ProductRecipe(), b, 40)
    assert recipe == ProductRecipe()
    monkeypatch.setattr(scaled_half, "packed", None)  # B is not scaled again
    assert torch.equal(dispatch.run(recipe, a, b, packed=made), wanted)


def test_without_an_accelerator_for_tiles_the_product_is_the_vendors(monkeypatch):
    monkeypatch.setattr(scaled_half, "missing_accelerator", lambda _: "no accelerator")
    a, b = torch.randn(8, 9), torch.randn(9, 7)
    executor = packed_executor(Request(8, 9, 7, device="cuda", precision="tf32"), SCALED_HALF, 0)
    with pytest.warns(UserWarning, match="no accelerator: the product is the vendor's"):
        assert torch.equal(executor.run(a, b), a @ b)

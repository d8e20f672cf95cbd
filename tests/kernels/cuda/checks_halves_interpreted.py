"""Run with TRITON_INTERPRET=1 by test_triton_kernels.py: products by float16 on CPU tensors, against float64.

Of float32 by pairs of float16, with and without levels of a scheme, and in tf32 by one scaled float16.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lcma.kernels.cuda import float16_pairs as pairs
from lcma.kernels.cuda import scaled_half, scaled_half_naive
from lcma.kernels.cuda.combine import Combination
from lcma.kernels.cuda.float16_pairs import pairs_product
from lcma.kernels.cuda.float16_pairs_level import pairs_arithmetic, pairs_by_level
from lcma.kernels.cuda.packed_product import packed_executor
from lcma.kernels.cuda.scaled_half import FACTOR, ROUNDING, SCALED_HALF, scaled_half_product
from lcma.kernels.cuda.tiles import Tile
from lcma.kernels.dense.arrangements import given
from lcma.kernels.request import Request
from lcma.schemes_db.resolve import resolve

from ...refusal import refuses

TILE, PLAIN = Tile(32, 32, 16, 4, 2), Tile(16, 16, 16, 4, 2)
SIZES = [(33, 47, 61), (1, 5, 1), (64, 32, 32)]
"""Of several tiles, the last of them cut short; of less than a tile; of whole ones."""

ANY = 35, 40, 33

PAIRS, LEVELS = 2.0**-21, 2.0**-19
"""Errors of products by pairs, without and with levels."""

U = 2.0**-11
"""Unit roundoff of tf32 and of float16."""


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def spread(count, most=100):
    return torch.exp2(torch.linspace(-most, most, count, dtype=torch.float64).round())


SPREAD = {"rows": (100, 0), "columns": (0, 100), "both": (60, 60)}
"""Exponents of the largest rows of A and columns of B; results stay within 2^+-120."""


def operands(m, k, n, kind):
    """A and B in float32, of entries whose magnitudes are of this kind."""
    a, b = torch.randn(m, k, dtype=torch.float64), torch.randn(k, n, dtype=torch.float64)
    down, across = SPREAD.get(kind, (0, 0))
    a, b = a * spread(m, down)[:, None], b * spread(n, across)[None, :]
    if kind == "outlier of a":
        a[m // 4, k // 2] = 2.0**100
    elif kind == "outlier of b":
        b[k // 2, n // 4] = -(2.0**100)
    elif kind == "small":
        a *= 2.0**-100
    elif kind == "subnormal":
        a, b = a * 2.0**-135, b * 2.0**40
    elif kind == "dead":
        a[:, ::3], b[::5], a[1::7], b[:, 2::5] = 0.0, 0.0, 0.0, 0.0
    return a.float(), b.float()


def along_k(kind):
    """A and B with entries along k from 2^-100 to 2^100, in opposite directions."""
    m, k, n = ANY
    a, b = torch.randn(m, k).double() * spread(k), torch.randn(k, n).double() / spread(k)[:, None]
    if kind == "zeros":
        a[:, k - 2 :], b[:3] = 0.0, 0.0
    elif kind == "rows":
        a *= spread(m, 20)[:, None]
    elif kind == "columns":
        b *= spread(n, 20)[None, :]
    return a.float(), b.float()


def unbalanced():
    """The first rows of A are small where B is large, but other rows are not: columns of A are alike."""
    (m, k, n), half = ANY, ANY[1] // 2
    a, b = torch.randn(m, k), torch.randn(k, n)
    a[: m // 2, half:] *= 2.0**-60
    b[:half] *= 2.0**-60
    return a, b


def errors(c, a, b):
    """The largest error of a row, and of a column, relative to the same row and column of |A| |B|."""
    exact, wide = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    lost = (c.double() - exact).abs()
    return [float((lost.norm(dim=axis) / wide.norm(dim=axis)).max()) for axis in (0, 1)]


def scales(x, axis):
    """Powers of two that scale the largest magnitudes of rows (0) or columns (1) to below 1."""
    largest = x.double().abs().amax(1 - axis, keepdim=True)
    return torch.where(largest > 0, torch.exp2(-torch.ceil(torch.log2(largest.clamp_min(2.0**-400)))), 1.0)


def scaled_errors(c, a, b):
    """The largest error of a row, and of a column, of C relative to |A| |B|, all lines scaled as the check has them."""
    down, across = scales(a, 0), scales(b, 1)
    exact = (a.double() @ b.double()) * down * across
    wide = (a.double().abs() * down) @ (b.double().abs() * across)
    lost = (c.double() * down * across - exact).abs()
    return [float((lost.sum(axis) / wide.sum(axis).clamp_min(1e-300)).nan_to_num().max()) for axis in (0, 1)]


def empty(a, b):
    return torch.full((a.shape[0], b.shape[1]), torch.nan)


def scaled(a, b, out=None, right=None):
    """The product by scaled float16, and whether the check found that it may have lost too much."""
    out, found, plain = empty(a, b) if out is None else out, [], scaled_half.multiply_plain

    def noting(flag, *others):
        found.append(bool(flag))
        plain(flag, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scaled_half, "multiply_plain", noting)
        scaled_half_product(a, b, out, right, TILE, PLAIN)
    return out, found[0]


def level_of(*names):
    return pairs_by_level(given([resolve(name)[0] for name in names])[0].program)


def check_pairs(a, b, out=None):
    assert max(errors(pairs_product(a, b, empty(a, b) if out is None else out, TILE), a, b)) <= PAIRS


def check_scaled(a, b, out=None, again=None, bound=2 * U * FACTOR):
    c, found = scaled(a, b, out)
    assert again is None or found == again
    assert max(scaled_errors(c, a, b)) <= bound
    return c


def check_level(a, b, out=None, names=("strassen",), used=True):
    out = empty(a, b) if out is None else out
    assert level_of(*names).run(a, b, out, TILE) is used
    assert max(errors(out, a, b)) <= (LEVELS if used else PAIRS)


CHECKS = {"pairs": check_pairs, "scaled": check_scaled, "level": check_level}
"""A product with the bound of its error."""

SCALED = ["plain", "rows", "columns", "small"]
OUTLIERS = ["outlier of a", "outlier of b"]


@pytest.mark.parametrize("kind", [*SCALED, *OUTLIERS, "both", "dead"])
@pytest.mark.parametrize("sizes", SIZES)
def test_rows_and_columns_of_any_scale_keep_the_bound(sizes, kind):
    a, b = operands(*sizes, kind)
    c = check_scaled(a, b, again=None if kind in OUTLIERS else False)
    if kind == "dead":
        assert (c[1::7] == 0).all()
    elif kind != "both":
        check_pairs(a, b)


@pytest.mark.parametrize("of_a", [False, True])
@pytest.mark.parametrize("of_b", [False, True])
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_operands_and_results_of_any_strides(check, of_a, of_b):
    (m, _, n), (a, b) = ANY, operands(*ANY, "rows")
    a, b = (x.mT.contiguous().mT if turned else x for x, turned in ((a, of_a), (b, of_b)))
    out = torch.full((2 * n, 2 * m), torch.nan)
    check(a, b, out[::2, ::2].mT)
    assert torch.isnan(out[1::2]).all()
    assert torch.isnan(out[:, 1::2]).all()


def test_zeros_stay_zeros():
    for a, b in (
        (torch.zeros(35, 20), torch.randn(20, 33)),
        (torch.randn(35, 20), torch.zeros(20, 33)),
        (torch.zeros(5, 7), torch.zeros(7, 3)),
    ):
        c, again = scaled(a, b)
        assert not again
        for found in (c, pairs_product(a, b, empty(a, b), TILE)):
            assert (found == 0).all()


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # infinity less infinity, and times 0, by numpy
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_pairs_refuse_entries_that_are_not_finite(bad):
    a, b = torch.randn(8, 8), torch.randn(8, 8)
    b[3, 4] = bad
    for product in (pairs_product, level_of("strassen").run):
        refuses("infinity or NaN", product, a, b, torch.empty(8, 8), TILE)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # infinity less infinity, by numpy
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("of_a", [True, False])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_scaled_entries_that_are_not_finite_change_their_row_or_column_only(bad, of_a):
    a, b = operands(*ANY, "plain")
    a[0], b[:, 0] = a[0] * 2.0**20, b[:, 0] * 2.0**-20
    (a if of_a else b)[3, 4] = bad
    c, again = scaled(a, b)
    assert again
    wanted = a.double() @ b.double()
    largest = float(wanted[torch.isfinite(wanted)].abs().max())
    torch.testing.assert_close(c.double(), wanted, rtol=0.05, atol=0.05 * largest, equal_nan=True)


def test_a_spread_along_k_is_balanced_by_pairs_without_a_scheme_and_over_an_operand():
    for kind in ("plain", "zeros", "rows", "columns"):
        check_pairs(*along_k(kind))
    a, b = along_k("plain")
    check_level(a, b, used=False)
    m, k, n = ANY
    square = [torch.zeros(k, k), torch.zeros(k, k)]
    square[0][:m], square[1][:, :n] = a, b
    assert executor(k, k, k, "fp32-accurate").run(*square, square[0]) is square[0]
    assert max(errors(square[0][:m, :n], a, b)) <= PAIRS


def test_entries_that_no_powers_balance_are_refused_by_pairs_and_multiplied_in_tf32():
    a, b = unbalanced()
    refuses(r"entries along k are too far apart .* whatever powers of two", pairs_product, a, b, empty(a, b), TILE)
    check_scaled(a, b, again=True, bound=2 * U)
    check_scaled(*along_k("plain"), again=True, bound=2 * U)
    # A subnormal number has fewer bits.
    check_scaled(*operands(*ANY, "subnormal"), again=True, bound=2.0**-4)


@pytest.mark.parametrize("names", [("strassen",), ("3x2x2",), ("strassen", "strassen")], ids=" ".join)
def test_levels_are_as_exact_as_float32(names):
    for sizes in ((12, 24, 20), (13, 26, 19)):
        check_level(*operands(*sizes, "plain"), names=names)


@pytest.mark.parametrize("kind", ["rows", "columns", "small", *OUTLIERS])
def test_levels_scale_rows_and_columns_and_are_given_up_where_these_are_unlike(kind):
    check_level(*operands(20, 24, 16, kind), used=kind not in OUTLIERS)


def test_loops_scale_and_store_halves_as_straight_line_code_does():
    level, height, width = level_of(*["strassen"] * 3).level, 1, 3
    for one, slabs, dtype in ((level.left, 686, torch.float16), (level.merge, 343, torch.float32)):
        assert one.form.nest is not None
        straight = Combination(replace(one.form, nest=None))
        matrix = torch.randn(1, 8 * height - 1, 8 * width - 2)
        stack = torch.randn(1, slabs, height, width).to(dtype)
        shifts = tuple((torch.arange(size) % 7 - 3).int() for size in matrix.shape[1:])
        results = []
        for combination in (one, straight):
            results.append((matrix.clone(), stack.clone()))
            combination.run(*results[-1], shifts=shifts)
        torch.testing.assert_close(*results, rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["plain", "rows", "both", "small", "subnormal", "dead", "outlier of b"])
@pytest.mark.parametrize("axis", [0, 1])
def test_scaled_lines_are_those_of_numpy(kind, axis):
    x = operands(33, 47, 61, kind)[axis]
    made = scaled_half.scaled_rows(x) if axis == 0 else scaled_half.unpacked(scaled_half.packed(x), *x.shape)
    values, shifts = scaled_half_naive.scale_lines(x.numpy(), axis)
    assert np.array_equal(made.shifts.numpy(), shifts)
    assert np.array_equal(made.values.numpy(), values)
    sizes = np.abs(np.ldexp(x.double().numpy(), np.expand_dims(shifts, 1 - axis)))
    np.testing.assert_allclose(made.sums.numpy(), sizes.sum(1 - axis), rtol=1e-5)
    np.testing.assert_allclose(made.weights.numpy(), sizes.sum(axis), rtol=1e-5)


@pytest.mark.parametrize("kind", ["plain", "rows", "both", "dead", "outlier of a"])
def test_the_scaled_product_and_its_check_are_those_of_numpy(kind):
    a, b = operands(33, 47, 61, kind)
    c, again = scaled(a, b)
    wanted = scaled_half_naive.scaled_half_product(a.numpy(), b.numpy(), ROUNDING)
    left, right = (scaled_half_naive.scale_lines(x.numpy(), axis)[0] for axis, x in enumerate((a, b)))
    assert again == scaled_half_naive.loses_too_much(left, right, ROUNDING)
    assert max(scaled_errors(c, a, b)[0], scaled_errors(torch.from_numpy(wanted), a, b)[0]) <= 2 * U * FACTOR
    np.testing.assert_allclose(c.numpy(), wanted, rtol=1e-3, atol=1e-5 * float(np.abs(wanted).max()))


@pytest.mark.parametrize("kind", ["plain", "rows", "both", "dead", "outlier of a", "along k"])
def test_the_check_of_pairs_is_that_of_numpy(kind):
    a, b = along_k("plain") if kind == "along k" else operands(33, 47, 61, kind)
    found = pairs.loses(*(pairs.folded(pairs.pairs_of(x, axis)) for axis, x in enumerate((a, b))), pairs.ROUNDING)
    left, right = (scaled_half_naive.scale_lines(x.numpy(), axis)[0] for axis, x in enumerate((a, b)))
    assert bool(found) == scaled_half_naive.loses_too_much(left, right, pairs.ROUNDING)
    assert bool(found) or kind != "along k"


def test_tf32_is_rounded_to_nearest():
    x = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-12, np.inf, 0.0, 3.4028235e38, 2.0**-140], np.float32)
    found = scaled_half_naive.as_tf32(x)
    assert found[:5].tolist() == [1 + 2.0**-10, 1 + 2 * 2.0**-10, -1.0, np.inf, 0.0]
    assert np.isfinite(found[5])


def executor(m, k, n, precision, level=None, **more):
    arithmetic = SCALED_HALF if precision == "tf32" else pairs_arithmetic(level)
    return packed_executor(Request(m, k, n, device="cuda", precision=precision, **more), arithmetic, 0)


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(scaled_half_product, "__defaults__", (None, TILE, PLAIN))


@pytest.mark.parametrize(
    ("precision", "names", "bound"),
    [("fp32-accurate", (), PAIRS), ("fp32-accurate", ("strassen",), LEVELS), ("tf32", (), 2 * U * FACTOR)],
)
def test_executors_check_their_tensors_and_write_over_an_operand(precision, names, bound, small_tiles):
    a, b = operands(33, 33, 33, "plain")
    runner, first = executor(33, 33, 33, precision, level_of(*names) if names else None), a.clone()
    refuses("plan again", runner.run, torch.zeros(8, 9), torch.zeros(9, 8))
    refuses("out must be", runner.run, a, b, torch.zeros(33, 34))
    assert runner.run(a, b, out=a) is a
    assert max((scaled_errors if precision == "tf32" else errors)(a, first, b)) <= bound


def test_a_b_that_was_scaled_before_gives_the_same_product(small_tiles):
    a, b = operands(*ANY, "both")
    runner = executor(*ANY, "tf32", static="B")
    prepared = runner.prepare(b.mT.contiguous().mT)
    assert runner.fits(prepared.sums)
    assert not runner.fits(b)
    assert not runner.fits(prepared.sums[:-1])
    c, _ = scaled(a, b)
    assert torch.equal(runner.run(a, prepared), c)
    assert torch.equal(runner.run(a, b), c)


def test_without_an_accelerator_for_tiles_the_product_is_the_vendors(monkeypatch):
    monkeypatch.setattr(scaled_half, "missing_accelerator", lambda _: "no accelerator")
    a, b = torch.randn(8, 9), torch.randn(9, 7)
    with pytest.warns(UserWarning, match="no accelerator: the product is the vendor's"):
        assert torch.equal(executor(8, 9, 7, "tf32").run(a, b), a @ b)

"""Run with TRITON_INTERPRET=1 by test_triton_kernels.py: products by float16 halves on CPU tensors, against float64."""

import pytest
import torch

from lcma.errors import PlanError
from lcma.kernels.cuda.combine import Combination
from lcma.kernels.cuda.float16_pairs import pairs_product
from lcma.kernels.cuda.float16_pairs_level import pairs_arithmetic, pairs_level
from lcma.kernels.cuda.packed_product import packed_executor
from lcma.kernels.cuda.tiles import Tile
from lcma.kernels.dense.given import given
from lcma.kernels.request import Request
from lcma.schemes_db.resolve import resolve

TILE = Tile(32, 32, 16, 4, 2)
SIZES = [(40, 72, 56), (33, 47, 61), (1, 5, 1), (64, 64, 64)]


def spread(count):
    return torch.exp2(torch.linspace(-100, 100, count, dtype=torch.float64).round())


def operands(m, k, n, kind):
    """A and B in float32: rows, columns, or one entry of either from 2^-100 to 2^100; results within 2^+-120."""
    a, b = torch.randn(m, k, dtype=torch.float64), torch.randn(k, n, dtype=torch.float64)
    if kind == "rows":
        a *= spread(m)[:, None]
    elif kind == "columns":
        b *= spread(n)[None, :]
    elif kind == "outlier of a":
        a[m // 4, k // 2] = 2.0**100
    elif kind == "outlier of b":
        b[k // 2, n // 4] = -(2.0**100)
    elif kind == "small":
        a *= 2.0**-100
    return a.float(), b.float()


def errors(c, a, b):
    """The largest error of a row, and of a column, relative to the same row and column of |A| |B|."""
    exact, wide = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    lost = (c.double() - exact).abs()
    return [float((lost.norm(dim=axis) / wide.norm(dim=axis)).max()) for axis in (0, 1)]


@pytest.mark.parametrize("kind", ["plain", "rows", "columns", "outlier of a", "outlier of b", "small"])
@pytest.mark.parametrize("sizes", SIZES)
def test_rows_and_columns_are_as_exact_as_float32(sizes, kind):
    torch.manual_seed(0)
    a, b = operands(*sizes, kind)
    c = pairs_product(a, b, torch.full((sizes[0], sizes[2]), torch.nan), TILE)
    assert max(errors(c, a, b)) <= 2.0**-21


@pytest.mark.parametrize("of_a", [False, True])
@pytest.mark.parametrize("of_b", [False, True])
def test_operands_of_any_strides(of_a, of_b):
    torch.manual_seed(1)
    a, b = operands(40, 72, 56, "plain")
    a, b = (x.mT.contiguous().mT if turned else x for x, turned in ((a, of_a), (b, of_b)))
    out = torch.full((56, 40), torch.nan).mT
    assert max(errors(pairs_product(a, b, out, TILE), a, b)) <= 2.0**-21


def test_zeros_stay_zeros():
    a, b = torch.zeros(40, 72), torch.randn(72, 56)
    assert (pairs_product(a, b, torch.full((40, 56), torch.nan), TILE) == 0).all()


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # infinity less infinity, by numpy
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_entries_that_are_not_finite_are_refused(bad):
    a, b = torch.randn(8, 8), torch.randn(8, 8)
    b[3, 4] = bad
    with pytest.raises(PlanError, match="infinity or NaN"):
        pairs_product(a, b, torch.empty(8, 8), TILE)


def along_k(kind):
    """A (40, 72) and B (72, 56) with entries along k from 2^-100 to 2^100, in opposite directions."""
    torch.manual_seed(2)
    a, b = torch.randn(40, 72).double() * spread(72), torch.randn(72, 56).double() / spread(72)[:, None]
    if kind == "zeros":
        a[:, 70:], b[:3] = 0.0, 0.0
    elif kind == "rows":
        a *= torch.exp2(torch.linspace(-20, 20, 40).round())[:, None]
    elif kind == "columns":
        b *= torch.exp2(torch.linspace(-20, 20, 56).round())[None, :]
    return a.float(), b.float()


@pytest.mark.parametrize("kind", ["plain", "zeros", "rows", "columns"])
def test_a_spread_along_k_is_balanced(kind):
    a, b = along_k(kind)
    out = torch.full((40, 56), torch.nan)
    pairs_product(a, b, out, TILE)
    assert max(errors(out, a, b)) <= 2.0**-21


def test_a_spread_along_k_is_balanced_without_a_scheme_and_over_an_operand():
    a, b = along_k("plain")
    out = torch.full((40, 56), torch.nan)
    assert not level_of("strassen").run(a, b, out, TILE)
    assert max(errors(out, a, b)) <= 2.0**-21
    square = [torch.zeros(72, 72), torch.zeros(72, 72)]
    square[0][:40], square[1][:, :56] = a, b
    first = square[0].clone()
    request = Request(72, 72, 72, device="cuda", precision="fp32-accurate")
    assert packed_executor(request, pairs_arithmetic(), 0).run(*square, square[0]) is square[0]
    assert max(errors(square[0][:40, :56], first[:40], b)) <= 2.0**-21


def test_a_spread_along_k_that_no_powers_balance_is_refused():
    """The first rows of A are small where B is large, but other rows are not: columns of A are alike."""
    torch.manual_seed(2)
    a, b = torch.randn(40, 72), torch.randn(72, 56)
    a[:20, 36:] *= 2.0**-60
    b[:36] *= 2.0**-60
    with pytest.raises(PlanError, match=r"entries along k are too far apart .* whatever powers of two") as refused:
        pairs_product(a, b, torch.empty(40, 56), TILE)
    assert "\n" not in str(refused.value)


def test_the_executor_checks_its_tensors():
    executor = packed_executor(Request(8, 8, 8, device="cuda", precision="fp32-accurate"), pairs_arithmetic(), 0)
    with pytest.raises(PlanError, match="plan again"):
        executor.run(torch.zeros(8, 9), torch.zeros(9, 8))
    with pytest.raises(PlanError, match="out must be"):
        executor.run(torch.zeros(8, 8), torch.zeros(8, 8), torch.zeros(8, 9))


def level_of(*names):
    return pairs_level(given([resolve(name)[0] for name in names])[0].program)


LEVELS = [("strassen",), ("3x2x2",), ("strassen", "strassen")]


@pytest.mark.parametrize("names", LEVELS, ids=" ".join)
@pytest.mark.parametrize("sizes", [(64, 96, 80), (45, 70, 51)])
def test_levels_are_as_exact_as_float32(names, sizes):
    torch.manual_seed(3)
    a, b = operands(*sizes, "plain")
    out = torch.full((sizes[0], sizes[2]), torch.nan)
    assert level_of(*names).run(a, b, out, TILE)
    assert max(errors(out, a, b)) <= 2.0**-19


@pytest.mark.parametrize("kind", ["rows", "columns", "small"])
def test_levels_scale_rows_and_columns(kind):
    torch.manual_seed(4)
    a, b = operands(40, 72, 56, kind)
    out = torch.full((40, 56), torch.nan)
    assert level_of("strassen").run(a, b, out, TILE)
    assert max(errors(out, a, b)) <= 2.0**-19


@pytest.mark.parametrize("kind", ["outlier of a", "outlier of b"])
def test_levels_are_given_up_where_rows_or_columns_are_unlike(kind):
    torch.manual_seed(5)
    a, b = operands(40, 72, 56, kind)
    out = torch.full((40, 56), torch.nan)
    assert not level_of("strassen").run(a, b, out, TILE)
    assert max(errors(out, a, b)) <= 2.0**-21


def test_levels_take_any_strides():
    torch.manual_seed(6)
    a, b = operands(40, 72, 56, "rows")
    a, b = (x.mT.contiguous().mT for x in (a, b))
    out = torch.full((56, 40), torch.nan).mT
    assert level_of("strassen").run(a, b, out, TILE)
    assert max(errors(out, a, b)) <= 2.0**-19


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # infinity times 0, by numpy
def test_levels_refuse_what_is_not_finite():
    a, b = torch.randn(8, 8), torch.randn(8, 8)
    a[3, 4] = torch.inf
    with pytest.raises(PlanError, match="infinity or NaN"):
        level_of("strassen").run(a, b, torch.empty(8, 8), TILE)


def test_levels_write_over_an_operand():
    torch.manual_seed(7)
    a, b = operands(48, 48, 48, "plain")
    first = a.clone()
    executor = packed_executor(
        Request(48, 48, 48, device="cuda", precision="fp32-accurate"), pairs_arithmetic(level_of("strassen")), 0
    )
    assert executor.run(a, b, out=a) is a
    assert max(errors(a, first, b)) <= 2.0**-19


def test_loops_scale_and_store_halves_as_straight_line_code_does():
    torch.manual_seed(4)
    level, height, width = pairs_level(given([resolve("strassen")[0]] * 3)[0].program), 2, 3
    for one, slabs, dtype in ((level.left, 686, torch.float16), (level.merge, 343, torch.float32)):
        assert one.form.nest is not None
        straight = Combination(one.map, one.form.direction, one.blocks, scale=one.form.scale, halves=one.form.halves)
        matrix = torch.randn(1, 8 * height - 1, 8 * width - 2)
        stack = torch.randn(1, slabs, height, width).to(dtype)
        shifts = tuple((torch.arange(size) % 7 - 3).int() for size in matrix.shape[1:])
        results = []
        for combination in (one, straight):
            results.append((matrix.clone(), stack.clone()))
            combination.run(*results[-1], shifts=shifts)
        torch.testing.assert_close(*results, rtol=0, atol=0)

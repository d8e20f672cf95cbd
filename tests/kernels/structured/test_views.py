"""The strided product: where results lie between factors, and how many batched GEMMs a factor is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcma.kernels import decision_for
from lcma.kernels.block_low_rank import Blast, FactoredMatrix, LowRank, Monarch
from lcma.kernels.factored import factored_request
from lcma.kernels.kronecker import KroneckerSparse, Pattern, square_dyadic
from lcma.kernels.request import Layout
from lcma.kernels.structured.views import BlockRows, by_blocks, natural, steps_of


def test_rows_lie_in_block_order_where_one_view_writes_and_reads_them():
    """Monarch's first rows are [l, s, k], BLAST's [r, l] and [r, k], low-rank ones have one order."""
    first, second = steps_of(Monarch(24, 36, 3, 4, 5))
    assert (first.target, second.source) == (natural(3, 20, 1), natural(1, 15, 4))
    assert second.target == by_blocks(1, 6, 4)
    assert steps_of(Monarch(24, 36, 3, 4, 5, interleaved=True))[1].target == natural(1, 6, 4)
    first, middle, last = steps_of(Blast(24, 36, 3, 4, 7))
    assert (first.target, middle.source) == (BlockRows(3, 1, 7, (1, 1, 3)), by_blocks(1, 3, 7))
    assert (middle.target, last.source) == (by_blocks(1, 4, 7), BlockRows(4, 1, 7, (1, 1, 4)))
    first, second = steps_of(LowRank(24, 36, 5))
    assert (first.target, second.source) == (natural(1, 5, 1), natural(1, 5, 1))


def test_a_factor_is_one_batched_product_where_its_blocks_are_equally_far_apart():
    for structure in (Monarch(24, 36, 3, 4, 5), Blast(24, 36, 3, 4, 7), LowRank(24, 36, 5)):
        assert {step.calls for step in steps_of(structure)} == {1}
    (step,) = steps_of(KroneckerSparse.of(Pattern(5, 3, 4, 2)))
    (copied,) = steps_of(step_structure := KroneckerSparse.of(Pattern(5, 3, 4, 2)), True, True)
    assert (step.calls, copied.calls) == (2, 1)
    assert copied.source == by_blocks(5, 4, 2)
    assert step_structure.row_order is None
    assert max(step.calls for step in steps_of(KroneckerSparse.of(square_dyadic(16)))) <= 2


SIDES = st.integers(1, 4)


@st.composite
def chains(draw):
    """Lists of two or three patterns that compose, chainable or not."""
    patterns = [Pattern(*(draw(SIDES) for _ in range(4)))]
    for _ in range(draw(st.integers(1, 2))):
        rows = patterns[-1].cols
        a = draw(st.sampled_from([one for one in range(1, rows + 1) if rows % one == 0]))
        d = draw(st.sampled_from([one for one in range(1, rows // a + 1) if rows // a % one == 0]))
        patterns.append(Pattern(a, rows // (a * d), draw(SIDES), d))
    return tuple(patterns)


@settings(max_examples=60, deadline=None)
@given(chains(), st.sampled_from(["strided", "slabs"]), st.sampled_from(list(Layout)[:2]), st.sampled_from([1, 5]))
def test_any_chain_is_the_product_by_definition(patterns, strategy, layout, n):
    matrix = FactoredMatrix.random(patterns, dtype="float64")
    layouts = (Layout.ROWS, Layout.COLUMNS) if layout is Layout.ROWS else (Layout.COLUMNS, Layout.ROWS)
    request = factored_request(matrix.structure, n, "float64", layouts=layouts)
    x = np.random.default_rng(n).standard_normal((matrix.shape[1], n))
    operand = np.asfortranarray(x) if layouts[0] is Layout.COLUMNS else x
    found = decision_for(request, strategy=strategy).plan.build().run(matrix.factors, operand)
    np.testing.assert_allclose(found, matrix.dense() @ x, atol=1e-12)


@pytest.mark.parametrize("n", [1, 9])
@pytest.mark.parametrize("strategy", ["strided", "widened"])
@pytest.mark.parametrize(
    "structure",
    [Monarch(24, 36, 3, 4, 5, interleaved=True), Blast(24, 36, 3, 4, 7), LowRank(24, 36, 5)],
    ids=lambda one: one.kind,
)
def test_block_low_rank_products_of_tensors_may_be_complex_and_widened(structure, strategy, n):
    torch = pytest.importorskip("torch")
    matrix = FactoredMatrix.random(structure, dtype="complex64")
    if strategy == "widened" and isinstance(structure, LowRank):
        return
    x = torch.randn(n, 36, dtype=torch.complex64).T
    request = factored_request(structure, n, "complex64", device="cuda", layouts=(Layout.COLUMNS, Layout.COLUMNS))
    factors = list(map(torch.from_numpy, matrix.factors))
    found = decision_for(request, strategy=strategy).plan.build().run(factors, x)
    torch.testing.assert_close(found, torch.from_numpy(matrix.dense()) @ x, rtol=1e-4, atol=1e-5)

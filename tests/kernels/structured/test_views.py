"""The strided product: where results lie between factors, and how many batched GEMMs a factor is."""

from __future__ import annotations

from lcma.kernels.block_low_rank import Blast, LowRank, Monarch
from lcma.kernels.kronecker import KroneckerSparse, Pattern, square_dyadic
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

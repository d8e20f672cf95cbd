"""The roofline model on the paper's own device."""

import pytest

from lcma.kernels.block_low_rank import Blast, LowRank, Monarch
from lcma.workbench.bench.blr_roofline import A40, Roof, dense_seconds, structured_seconds

LAYERS = {
    (4096, 4096): (1024, 1024),
    (11008, 4096): (1488, 1536),
    (4096, 11008): (1488, 1536),
}
"""Outputs and inputs of Llama-7B's layers; ranks of low-rank and BLAST, and of Monarch (r = r' b)."""


def structures(rows, cols):
    rank, monarch = LAYERS[rows, cols]
    return LowRank(rows, cols, rank), Monarch(rows, cols, 16, 16, monarch // 16), Blast(rows, cols, 16, 16, rank)


def test_the_order_on_an_a40_at_1024_tokens_is_that_of_figure_3():
    low, monarch, blast = (structured_seconds(one, 1024, 2, A40) for one in structures(4096, 4096))
    assert low < dense_seconds(4096, 4096, 1024, 2, A40) < monarch < blast


@pytest.mark.parametrize("sizes", LAYERS, ids=str)
def test_one_token_is_bound_by_the_bytes_of_the_weights(sizes):
    dense = dense_seconds(*sizes, 1, 2, A40)
    for one in structures(*sizes):
        ratio = one.parameters / (one.rows * one.cols)
        assert structured_seconds(one, 1, 2, A40) == pytest.approx(ratio * dense, rel=0.02)


def test_traffic_is_that_of_table_2():
    slow = Roof(1e30, 1.0)
    n, i, o, r, b = 1024, 4096, 4096, 1024, 16
    low, monarch, blast = structures(o, i)
    plain = n * i + i * r + r * o + n * o
    assert structured_seconds(low, n, 2, slow) == 2 * (plain + 2 * n * r)
    assert structured_seconds(monarch, n, 2, slow) == 2 * (plain + 4 * b * n * r)
    assert structured_seconds(blast, n, 2, slow) == 2 * (plain + r * b * b + 8 * b * n * r)


def test_a_cache_that_holds_the_middle_saves_its_traffic():
    low, monarch, _ = structures(4096, 4096)
    slow = Roof(1e30, 1.0, 6 << 20)
    assert structured_seconds(low, 1024, 2, slow) < structured_seconds(low, 1024, 2, slow, in_cache=False)
    assert structured_seconds(monarch, 1024, 2, slow) == structured_seconds(monarch, 1024, 2, slow, in_cache=False)
    assert structured_seconds(monarch, 1024, 2, slow, permuted=False) < structured_seconds(monarch, 1024, 2, slow)

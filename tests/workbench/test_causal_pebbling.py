"""Memory beyond C that a scheme needs in its own output, against all orders of the products."""

import numpy as np
import pytest

import lcma
from lcma.workbench.analysis.pebbling import blocks_beyond, sums_of, weights


@pytest.mark.parametrize(
    ("name", "beyond"),
    [("eca-stage1", 0), ("4x4x4-tri-out-r34-sparse", 0), ("4x4x4-tri-out-r34", 2), ("strassen", 1)],
)
def test_the_least_number_of_blocks_beyond_the_output(name, beyond):
    assert blocks_beyond(lcma.resolve(name)[0]) == beyond


def possible(columns, sums, cells):
    """Return whether some order of the products fits: all of them, by the sets of products that can have been done."""
    rank = len(sums)
    reached = {0}
    for _ in range(rank):
        after = set()
        for done in reached:
            for r in range(rank):
                now = done | 1 << r
                if not done >> r & 1 and now not in after:
                    held = np.linalg.matrix_rank(columns[:, [t for t in range(rank) if now >> t & 1]])
                    if held + sums[r] <= cells:
                        after.add(now)
        reached = after
    return bool(reached)


@pytest.mark.parametrize("name", ["strassen", "winograd", pytest.param("2x2x4", marks=pytest.mark.slow)])
def test_no_order_of_the_products_needs_less(name):
    scheme = lcma.resolve(name)[0]
    columns, sums, beyond = weights(scheme), sums_of(scheme), blocks_beyond(scheme)
    assert possible(columns, sums, len(columns) + beyond)
    assert beyond > 0
    assert not possible(columns, sums, len(columns) + beyond - 1)

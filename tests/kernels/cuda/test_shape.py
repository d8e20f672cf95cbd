"""The sizes of blocks: whole segments, and k in whole lines where that adds little."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcma.kernels import Request
from lcma.kernels.cuda.level import PaddedProduct, cuda_level
from lcma.kernels.cuda.shape import LINE, MOST_ADDED, SEGMENT, Shape, block_sizes
from lcma.kernels.precision import fields_of

from ..gpu import H200, SCHEME, candidate, program

SIZES = st.tuples(*[st.integers(1, 40000)] * 3)
GRIDS = st.tuples(*[st.integers(1, 125)] * 3)
ITEMSIZES = st.sampled_from([2, 4, 8])

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""In a long run of tests a collection of garbage may take longer than an example."""


def in_segments(size: int, parts: int, itemsize: int) -> int:
    """The least block of whole segments."""
    block = -(-size // parts)
    return block + -block % (SEGMENT // itemsize)


@UNHURRIED
@given(SIZES, st.lists(GRIDS, min_size=1, max_size=5), ITEMSIZES)
def test_numbers_and_arrays_are_the_same(sizes, grids, itemsize):
    arrays = tuple(np.array(axis, dtype=float) for axis in zip(*grids, strict=True))
    found = np.stack(block_sizes(sizes, arrays, itemsize), axis=-1)
    alone = [block_sizes(sizes, grid, itemsize) for grid in grids]
    assert all(type(size) is int for block in alone for size in block)
    assert found.tolist() == [list(block) for block in alone]


@UNHURRIED
@given(SIZES, GRIDS, ITEMSIZES)
def test_only_k_is_rounded_to_lines_and_by_little(sizes, grid, itemsize):
    m, k, n = block_sizes(sizes, grid, itemsize)
    least = tuple(in_segments(size, parts, itemsize) for size, parts in zip(sizes, grid, strict=True))
    assert (m, n) == (least[0], least[2])
    assert least[1] <= k <= (1 + MOST_ADDED) * least[1]
    whole = least[1] + -least[1] % (LINE // itemsize)
    small = whole - least[1] <= MOST_ADDED * least[1]
    assert k == (whole if small and grid[1] > 1 else least[1])


def test_the_padded_product_of_the_vendor_is_rounded_to_segments():
    shape = Shape(64, 5461, 64, "bfloat16")
    assert shape.blocks(PaddedProduct.target) == (64, *PaddedProduct.padded(5461, 64, 2)) == (64, 5464, 64)


@pytest.mark.parametrize(
    ("dtype", "k", "block"), [("bfloat16", 6120, 2048), ("tf32", 3060, 1024), ("float64", 1530, 512)]
)
def test_the_price_the_stacks_and_a_prepared_operand_have_the_same_blocks(dtype, k, block):
    request = Request(5000, k, 4000, **fields_of(dtype), device="cuda")
    level, scheme = cuda_level(program("3x3x3")), candidate("3x3x3")
    item = request.itemsize
    bm, bk, bn = level.blocks(*request.shape, item)
    assert bk == block > in_segments(k, 3, item)
    stages = SCHEME.predict(scheme, request, H200)
    assert [stage.product for stage in stages if stage.product] == [(bm, bk, bn)]
    stacks = level.rank * (bm * bk + bk * bn + bm * bn) * item
    assert SCHEME.workspace(scheme, request, H200) == stacks
    assert level.prepared_shape(k, 4000, item) == (1, level.rank, bk, bn)
    aligned = Request(5000, 3 * block, 4000, **fields_of(dtype), device="cuda")
    (mine,), (other,) = (
        [stage.seconds for stage in SCHEME.predict(scheme, one, H200) if stage.product] for one in (request, aligned)
    )
    assert mine == other

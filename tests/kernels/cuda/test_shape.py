"""The sizes of blocks: whole segments, and k in whole lines where that adds little."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lcma
from lcma.kernels import Candidate, Machine, Request, strategies
from lcma.kernels.cuda.cost_model import CudaCostModel
from lcma.kernels.cuda.h200 import h200
from lcma.kernels.cuda.level import PaddedProduct, cuda_level
from lcma.kernels.cuda.shape import LINE, MOST_ADDED, SEGMENT, Shape, block_sizes
from lcma.kernels.dense.given import GivenProgram
from lcma.kernels.precision import fields_of
from lcma.schemes_db import Target
from lcma.schemes_db.straightline import program_of

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
@given(SIZES, st.lists(GRIDS, min_size=1, max_size=5), st.sampled_from([1, 2, 4, 8]))
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


@UNHURRIED
@given(st.integers(1, 40000), st.integers(0, 400), st.integers(1, 125), ITEMSIZES)
def test_longer_sums_have_no_shorter_blocks(k, more, parts, itemsize):
    first, second = (block_sizes((8, size, 8), (2, parts, 2), itemsize)[1] for size in (k, k + more))
    assert first <= second


@UNHURRIED
@given(st.integers(1, 300), st.integers(1, 125), st.sampled_from([1, 2, 4, 8]))
def test_blocks_of_whole_lines_stay_as_they_are(lines, parts, itemsize):
    block = lines * LINE // itemsize
    assert block_sizes((block, parts * block, block), (1, parts, 1), itemsize) == (block, block, block)


@pytest.mark.parametrize(
    ("k", "parts", "itemsize", "block"),
    [
        (16384, 3, 2, 5504),  # 5464 in segments
        (16384, 5, 2, 3328),  # 3280
        (16384, 4, 2, 4096),
        (8192, 3, 4, 2752),  # 2732
        (8192, 5, 4, 1664),  # 1640
        (4096, 3, 2, 1368),  # 1408 would add a 34th
        (16384, 3, 1, 5472),  # 8 bits: segments
        (5464, 1, 2, 5464),  # the operand's own rows
    ],
)
def test_examples(k, parts, itemsize, block):
    assert Shape.blocks_of((64, k, 64), itemsize, Target.general(2, parts, 2)) == (32, block, 32)


def test_the_padded_product_of_the_vendor_is_rounded_to_segments():
    shape = Shape(64, 5461, 64, "bfloat16")
    assert shape.blocks(PaddedProduct.target) == (64, *PaddedProduct.padded(5461, 64, 2)) == (64, 5464, 64)


@pytest.mark.parametrize(
    ("dtype", "k", "block"), [("bfloat16", 6120, 2048), ("tf32", 3060, 1024), ("float64", 1530, 512)]
)
def test_the_price_the_stacks_and_a_prepared_operand_have_the_same_blocks(dtype, k, block):
    program, request = (
        program_of(lcma.resolve("3x3x3")[0]),
        Request(5000, k, 4000, **fields_of(dtype), device="cuda"),
    )
    candidate = Candidate("dense", "scheme", GivenProgram("3x3x3", program), (("method", "batched"),))
    machine = Machine("cuda", h200(), CudaCostModel(h200()))
    strategy, level = strategies("cuda")["dense", "scheme"], cuda_level(program)
    item = request.itemsize
    bm, bk, bn = level.blocks(*request.shape, item)
    assert bk == block > in_segments(k, 3, item)
    stages = strategy.predict(candidate, request, machine)
    assert [stage.product for stage in stages if stage.product] == [(bm, bk, bn)]
    slabs = level.slabs
    stacks = (slabs[0] * bm * bk + slabs[1] * bk * bn + slabs[2] * bm * bn) * item
    assert strategy.workspace(candidate, request, machine) == stacks
    assert level.prepared_shape(k, 4000, item) == (1, slabs[1], bk, bn)
    aligned = Request(5000, 3 * block, 4000, **fields_of(dtype), device="cuda")
    (mine,), (other,) = (
        [stage.seconds for stage in strategy.predict(candidate, one, machine) if stage.product]
        for one in (request, aligned)
    )
    assert mine == other


@pytest.mark.parametrize(("dtype", "k"), [("float64", 426), ("float32", 852), ("float64", 7), ("float64", 421)])
def test_products_with_a_padded_k(dtype, k):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    level = cuda_level(program_of(lcma.resolve("3x3x3")[0]))
    a, b = (torch.randn(*size, dtype=getattr(torch, dtype)) for size in ((1, 7, k), (1, k, 10)))
    wanted = a.double() @ b.double()
    prepared = level.prepare(b)
    assert tuple(prepared.sums.shape) == level.prepared_shape(k, 10, a.element_size())
    for right, pieces in ((b, 1), (prepared, 1), (b, 2)):
        out = torch.full((1, 7, 10), float("nan"), dtype=a.dtype)
        level.run(a, right, out, pieces)
        assert (out - wanted).norm() <= (1e-13 if dtype == "float64" else 1e-5) * wanted.norm()

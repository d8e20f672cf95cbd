"""Run with TRITON_INTERPRET=1 by test_triton_kernels.py: int8 products on CPU tensors, against plain torch."""

from functools import partial

import pytest
import torch

from lcma.kernels.cuda.int8 import BY_KERNEL, launch_int8, multiply, packed_columns
from lcma.kernels.cuda.packed_product import packed_executor
from lcma.kernels.cuda.tiles import Tile
from lcma.kernels.request import Request

from ..canvases import written

TILE = Tile(32, 64, 64, 4, 3)


def drawn(*shape, most=127):
    """Entries at the ends of the range for the most part: there overflows show."""
    torch.manual_seed(sum(shape))
    values = torch.randint(-most, most + 1, shape)
    return torch.where(torch.rand(shape) < 0.7, values.sign() * most, values).to(torch.int8)


def exactly(a, b):
    return (a.long() @ b.long()).to(torch.int32)


@pytest.mark.parametrize("sizes", [(40, 64, 70), (33, 200, 65), (32, 7, 64), (1, 130, 1)])
def test_products_are_exact_within_their_tensor(sizes):
    m, k, n = sizes
    left, right = drawn(m, k), drawn(n, k)
    found = written(lambda out: launch_int8(left, right, out, TILE), (m, n), torch.int32)
    assert torch.equal(found, exactly(left, right.T))


@pytest.mark.parametrize("order", ["rows", "columns"])
def test_products_are_exact_at_the_end_of_the_range(order):
    m, k, n = 21, 45, 37
    a, b = drawn(m, k), drawn(k, n)
    if order == "columns":
        a, b = (x.mT.contiguous().mT for x in (a, b))
    executor = packed_executor(Request(m, k, n, "int8", device="cuda", max_abs=127), BY_KERNEL, 0)
    assert torch.equal(written(partial(executor.run, a, b), (m, n), torch.int32), exactly(a, b))
    prepared = executor.prepare(b)
    assert torch.equal(executor.run(a, prepared), exactly(a, b))


def test_operands_in_whole_segments_are_not_copied():
    a, b = drawn(20, 64), drawn(48, 64).mT
    assert packed_columns(b).data_ptr() == b.data_ptr()
    out = torch.empty((20, 48), dtype=torch.int32)
    multiply(a, packed_columns(b), out)
    assert torch.equal(out, exactly(a, b))

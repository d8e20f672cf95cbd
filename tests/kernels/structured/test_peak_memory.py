"""Products by slabs copy neither X nor the result: what numpy allocates during a call."""

import tracemalloc

import numpy as np
import pytest

from lcma.kernels.kronecker import FactoredMatrix, Pattern
from lcma.kernels.products.factored import matmul
from lcma.workbench.bench.baselines.permuted import by_bmm

SMALL = 1 << 18
"""Bytes of Python objects that a call may take."""


def peak_of(call):
    """The most bytes that numpy and Python hold at a time during a call, beyond those before it."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("layout", ["bsf", "bsl"])
@pytest.mark.parametrize(
    "patterns", [(Pattern(2, 64, 64, 4),), (Pattern(1, 32, 32, 16), Pattern(16, 32, 32, 1))], ids=["one", "two"]
)
def test_a_repeated_call_allocates_nothing_of_the_size_of_its_operands(layout, patterns):
    matrix = FactoredMatrix.random(patterns)
    features, batch = matrix.shape[0], 8192
    x = np.ones((batch, features) if layout == "bsf" else (features, batch), np.float32)
    out = np.empty_like(x)
    most = x.nbytes // 4

    def multiply():
        matmul(matrix, x, layout, out=out, strategy="slabs", max_workspace=most)

    multiply()  # compiles, and leaves buffers of `most` bytes or less with the pool
    assert peak_of(multiply) <= SMALL


def test_copies_would_be_seen():
    pattern = Pattern(2, 64, 64, 4)
    matrix, x = FactoredMatrix.random((pattern,)), np.ones((512, 8192), np.float32)
    assert peak_of(lambda: by_bmm(matrix.factors[0], pattern, x, np.empty_like(x))) > 2 * x.nbytes

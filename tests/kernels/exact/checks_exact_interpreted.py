"""Run with TRITON_INTERPRET=1 by test_triton_kernels.py: exact products of tensors, on tensors of a processor.

Sizes are no multiples of a tile or a word, and results lie in the middle of a canvas whose border must stay as it was.
"""

from functools import partial

import numpy as np
import pytest
import torch

from lcma.kernels.cuda.tiles import Tile
from lcma.kernels.exact import tensors
from lcma.kernels.exact.bits import BitMatrix
from lcma.kernels.exact.gf2 import bit_core
from lcma.kernels.exact.naive import naive_bits, naive_product
from lcma.kernels.exact.schemes import given_chain
from lcma.kernels.exact.tensors import (
    FUSED,
    VENDOR,
    BitTensorLeaf,
    DigitTensorLeaf,
    FloatTensorLeaf,
    TensorMemory,
    TensorSums,
    pack,
    unpack,
)
from lcma.kernels.plans.decisions import executor_for
from lcma.kernels.products.exact import exact_request, multiply_elements
from lcma.kernels.ring import GF2, INTEGERS, ExactRing

from ...refusal import refuses
from ..canvases import written

SIZES = [(1, 1, 1), (33, 130, 70), (70, 65, 257), (5, 300, 64)]
INT64 = -(1 << 63), (1 << 63) - 1
CPU = TensorMemory("cpu")
PRIMES = (3, 1021, 8388593, (1 << 31) - 1, (1 << 61) - 1)


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    monkeypatch.setattr(tensors, "TILE", Tile(32, 64, 32, 4, 2))


def words(matrix):
    return torch.from_numpy(matrix.words.view(np.int64).copy())


def computed(core, left, right, rows, cols):
    """Run a core into the middle of a canvas."""
    return written(lambda out: core.run(left, right, out, CPU), (rows, cols), torch.int64).numpy()


def assert_bits(core, seed=1):
    m, k, n = core.sizes
    a, b = BitMatrix.random(m, k, seed=seed), BitMatrix.random(k, n, seed=seed + 1)
    found = computed(core, words(a), words(b), m, -(-n // 64))
    assert (found.view(np.uint64) == naive_bits(a, b).words).all()


def assert_exact(core, low, high, ring, reduced=False):
    """Multiply random integers from low to high, some at the ends; `reduced`: residues are given to the core."""
    rng, (m, k, n) = np.random.default_rng(5), core.sizes
    a, b = (rng.integers(low, high, shape, endpoint=True) for shape in ((m, k), (k, n)))
    a[0], b[:, 0] = high, low
    left, right = (torch.from_numpy(x % ring.modulus if reduced else x) for x in (a, b))
    assert (computed(core, left, right, m, n) == naive_product(a, b, ring)).all()


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64])
@pytest.mark.parametrize("cols", [1, 64, 130])
def test_elements_are_packed_as_bit_matrices_are(dtype, cols):
    elements = torch.randint(0, 2, (37, cols), generator=torch.Generator().manual_seed(1)).to(dtype)
    packed = pack(elements)
    assert (packed.numpy().view(np.uint64) == BitMatrix.from_array(elements.numpy().astype(np.uint8)).words).all()
    assert (unpack(packed, cols) == elements.to(torch.int8)).all()
    assert (unpack(packed, cols, 40, turned=True) == torch.nn.functional.pad(elements.to(torch.int8).T, (0, 3))).all()


def test_integers_are_packed_modulo_2():
    elements = torch.tensor([[-1, 2, -3, 4, 1 << 40, (1 << 40) + 1]])
    assert unpack(pack(elements), 6).tolist() == [[1, 0, 1, 0, 0, 1]]


@pytest.mark.parametrize("method", [VENDOR, FUSED])
@pytest.mark.parametrize("sizes", SIZES)
def test_leaves_are_the_naive_product(method, sizes):
    assert_bits(BitTensorLeaf(sizes, method))


@pytest.mark.parametrize("schemes", [["strassen"], ["4x4x5:60"], ["strassen", "strassen"]])
def test_levels_are_the_naive_product(schemes):
    leaf = partial(BitTensorLeaf, method=FUSED)
    assert_bits(bit_core(given_chain(schemes, 1, GF2).maps, (37, 300, 257), leaf, TensorSums()), seed=3)


@pytest.mark.parametrize("modulus", [*PRIMES, 100, 1 << 32, 1 << 62])
def test_products_of_digits_are_exact(modulus):
    ring = ExactRing(modulus)
    assert_exact(DigitTensorLeaf((33, 70, 65), ring, (ring.magnitude(1 << 63),) * 2), *INT64, ring)


@pytest.mark.parametrize("bits", [1, 7, 8, 20, 26])
def test_products_of_digits_over_the_integers_are_exact(bits):
    assert_exact(DigitTensorLeaf((33, 130, 70), INTEGERS, (1 << bits,) * 2), -(1 << bits), 1 << bits, INTEGERS)


@pytest.mark.parametrize("modulus", [3, 1021, 8388593])
def test_products_in_float64_are_exact(modulus):
    ring = ExactRing(modulus)
    core = FloatTensorLeaf((7, 1300, 5), ring, (ring.magnitude(1 << 63),) * 2)
    assert core.depth < 1300 or modulus < 8388593
    assert_exact(core, *INT64, ring)


def test_products_of_digits_are_cut_along_k_so_that_no_sum_exceeds_int32(monkeypatch):
    for modulus in PRIMES:
        ring = ExactRing(modulus)
        leaf = DigitTensorLeaf((64, 1 << 20, 64), ring, (ring.magnitude(1 << 63),) * 2)
        assert leaf.digits * leaf.depth << 14 < 1 << 31
        assert 127 * (256**leaf.digits - 1) // 255 >= modulus // 2
    monkeypatch.setattr(DigitTensorLeaf, "depth", 64)
    ring = ExactRing(8388593)
    assert_exact(DigitTensorLeaf((5, 200, 9), ring, (ring.magnitude(1 << 23),) * 2), 0, 8388592, ring)


def exact(a, b, ring, strategy=None):
    """Multiply CPU tensors as `lcma.matmul` multiplies those of a GPU."""
    left, right = (torch.from_numpy(x) for x in (a, b))
    if ring.modulus == 2:
        return multiply_elements(left, right, ring, scheme="auto", levels=None, strategy=strategy).numpy()
    return executor_for(exact_request(left, right, ring), strategy=strategy).run(left, right).numpy()


@pytest.mark.parametrize("ring", [ExactRing(8388593), ExactRing((1 << 61) - 1), INTEGERS])
@pytest.mark.parametrize("strategy", [None, "leaf", "digits"])
def test_plans_of_a_gpu_multiply_batches_exactly(ring, strategy):
    rng = np.random.default_rng(7)
    a, b = rng.integers(-(1 << 20), 1 << 20, (2, 1, 9, 70)), rng.integers(-(1 << 20), 1 << 20, (3, 70, 5))
    assert (exact(a, b, ring, strategy=strategy) == naive_product(a, b, ring)).all()


@pytest.mark.parametrize("strategy", [None, "kernel"])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64])
def test_elements_over_gf2_are_multiplied(strategy, dtype):
    rng = np.random.default_rng(8)
    a, b = rng.integers(0, 2, (2, 33, 70)).astype(dtype), rng.integers(0, 2, (70, 65)).astype(dtype)
    found = exact(a, b, GF2, strategy)
    assert found.dtype == (np.bool_ if dtype is np.bool_ else np.int64)
    assert (found == (a.astype(np.int64) @ b.astype(np.int64)) % 2).all()


def test_out_magnitudes_and_results_are_checked():
    a = torch.arange(12).reshape(3, 4)
    executor = executor_for(exact_request(a, a.T, INTEGERS, max_abs=11))
    out = torch.empty(3, 3, dtype=torch.int64)
    assert executor.run(a, a.T, out) is out
    assert (out == a @ a.T).all()
    turned = torch.empty(3, 3, dtype=torch.int64).T
    assert (executor.run(a, a.T, turned) == a @ a.T).all()
    refuses("magnitude 12, but max_abs=11", executor.run, a + 1, a.T)
    refuses("out must be a tensor", executor.run, a, a.T, out[:2])
    refuses("the plan is for int64 tensors of the shapes", executor.run, a.float(), a.T)
    a = np.full((2, 4), 1 << 31)
    refuses("exceed int64", exact, a, a.T, INTEGERS)


@pytest.mark.parametrize("shape", [(0, 5, 3), (4, 0, 3), (4, 5, 0)])
@pytest.mark.parametrize("ring", [GF2, ExactRing(101), INTEGERS])
def test_empty_products_are_zero(shape, ring):
    m, k, n = shape
    found = exact(np.zeros((m, k), np.int64), np.zeros((k, n), np.int64), ring)
    assert found.shape == (m, n)
    assert not found.any()

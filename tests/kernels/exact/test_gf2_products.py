"""Products over GF(2): every leaf, every scheme, any size, batches, plans; bit matrices, their parts and files."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import lcma
from lcma.kernels import Pool, Request, plan_for
from lcma.kernels.cpu.cost_model import CpuCostModel
from lcma.kernels.cpu.machine import cpu_machine
from lcma.kernels.exact import gf2
from lcma.kernels.exact.cpu import STRATEGIES, exact_core
from lcma.kernels.exact.gf2 import AFFINE, TABLES, BitLeaf, Bits, best_kernel, bit_core
from lcma.kernels.exact.naive import naive_bits
from lcma.kernels.exact.schemes import given_chain
from lcma.kernels.planning.profile import GemmRate, Profile
from lcma.kernels.ring import GF2

from ...refusal import refuses, refuses_with
from ..cases import table

BitMatrix = lcma.BitMatrix

KERNELS = [TABLES, *([AFFINE] if best_kernel() == AFFINE else [])]
SIZES = [(1, 1, 1), (2, 65, 3), (65, 130, 200), (97, 64, 257), (5, 8300, 70), (300, 9, 640), (700, 70, 9)]


@pytest.fixture(autouse=True)
def _every_thread_is_worth_starting(monkeypatch):
    monkeypatch.setattr(gf2, "OF_A_THREAD", 1)


def computed(core, a, b, threads):
    c = np.full((a.shape[0], b.words.shape[1]), 0xA5A5, np.uint64)
    with Pool(poison=True).take(core.workspace(threads)) as arena:
        core.run(a.words, b.words, c, arena, threads)
    return BitMatrix(c, b.cols)


LEVELS = ("strassen", "4x4x4:47", "4x4x5:60", "4x5x5:73", "laderman", "4x4x4:47/strassen")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("schemes", "threads"), [("", 1), ("", 2), *((schemes, 2) for schemes in LEVELS)])
@pytest.mark.parametrize("sizes", SIZES)
def test_leaves_and_levels_are_the_naive_product(kernel, schemes, threads, sizes):
    (m, k, n), leaf = sizes, partial(BitLeaf, kernel=kernel)
    a, b = BitMatrix.random(m, k, seed=1), BitMatrix.random(k, n, seed=2)
    core = bit_core(given_chain(schemes.split("/"), 1, GF2).maps, sizes, leaf, Bits()) if schemes else leaf(sizes)
    assert computed(core, a, b, threads) == naive_bits(a, b)


RATES = {256: 2.02e12, 512: 8.79e12, 1024: 1.7e13, 2048: 2.15e13, 4096: 2.07e13, 8192: 2.15e13}
"""Rates of the leaf on one core of an AMD EPYC; its sums move 23 GB/s."""


def test_prices_of_levels_are_within_a_tenth_of_measured_times():
    rows = tuple(GemmRate("bit", size, size, size, rate) for size, rate in RATES.items())
    profile = Profile("epyc", "one core", gemm=rows, bandwidth=29e9, combine_rate=23e9)
    machine = replace(cpu_machine(), profile=profile, threads=1, costs=CpuCostModel(profile))
    for size, scheme, ratio in table(__file__, "levels"):
        request = Request(size, size, size, "bit", ring=GF2)
        chain = given_chain(scheme, 1, GF2)
        cores = exact_core(request, chain), exact_core(request, None)
        seconds = [sum(stage.seconds for stage in STRATEGIES[0].priced(core, None, request, machine)) for core in cores]
        assert seconds[0] / seconds[1] == pytest.approx(ratio, rel=0.1), (size, scheme)


def test_bits_beyond_the_edge_stay_zero_and_arrays_are_reduced_modulo_2():
    a, b = BitMatrix.random(70, 100, seed=5), BitMatrix.random(100, 33, seed=6)
    for scheme in ("auto", "strassen", "4x4x4:47"):
        product = lcma.matmul(a, b, scheme, ring="Z2")
        BitMatrix(product.words, 33)  # raises where a bit beyond column 33 is set
        assert product == naive_bits(a, b)
    rng = np.random.default_rng(7)
    a, b = rng.integers(-9, 9, (20, 30)), rng.integers(-9, 9, (30, 10))
    product = lcma.matmul(a, b, ring="Z2")
    assert product.dtype == np.int64
    assert np.array_equal(product, a @ b & 1)
    assert lcma.matmul(a % 2 == 1, b % 2 == 1, ring="Z2").dtype == np.bool_


def test_auto_takes_a_scheme_for_large_products_only_and_plans_restore_it():
    assert plan_for(Request(256, 256, 256, "bit", ring=GF2)).candidate.strategy == "leaf"
    request = Request(1 << 15, 1 << 15, 1 << 15, "bit", ring=GF2)
    plan = plan_for(request)
    assert plan.seconds == pytest.approx(sum(stage.seconds for stage in plan.stages))
    family, strategy, key, parameters = plan.candidate.key
    assert (family, strategy) == ("exact", "scheme")
    assert plan.strategy.restore(key, parameters, request) == plan.candidate


@pytest.mark.parametrize("kernel", KERNELS)
def test_small_products_take_one_thread(kernel, monkeypatch):
    monkeypatch.setattr(gf2, "OF_A_THREAD", 2 * 96**3)
    taken = []

    def spied(call, count, threads):
        taken.append(threads)
        call(0, count)

    monkeypatch.setattr(gf2, "parallel_rows", spied)
    for size in (64, 96, 192):
        a, b = BitMatrix.random(size, size, seed=0), BitMatrix.random(size, size, seed=1)
        before = len(taken)
        computed(BitLeaf((size, size, size), kernel), a, b, 4)
        assert set(taken[before:]) == {4 if size > 96 else 1}


SHAPES = [(0, 0), (1, 1), (3, 64), (64, 65), (130, 200), (2, 5, 70), (0, 7), (7, 0)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64])
def test_arrays_round_trip(shape, dtype):
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    matrix = BitMatrix.from_array(array)
    assert matrix.shape == shape
    assert np.array_equal(matrix.to_array(dtype), array)
    assert np.array_equal(matrix.T.to_array(dtype), array.swapaxes(-1, -2))


def test_bits_are_ordered_sliced_and_summed():
    array = np.zeros((1, 70), np.uint8)
    array[0, [0, 9, 69]] = 1
    words = BitMatrix.from_array(array).words
    assert words.tolist() == [[1 | 1 << 9, 1 << 5]]
    packed = np.packbits(array, axis=1, bitorder="little")
    assert words.astype("<u8").view(np.uint8)[0, : packed.shape[1]].tolist() == packed[0].tolist()
    matrix = BitMatrix.random(3, 20, 100, seed=2)
    assert np.array_equal(matrix[1].to_array(), matrix.to_array()[1])
    assert np.array_equal(matrix[:, ::-1, 90:2:-3].to_array(), matrix.to_array()[:, ::-1, 90:2:-3])
    a, b = BitMatrix.random(9, 77, seed=3), BitMatrix.random(9, 77, seed=4)
    assert np.array_equal((a ^ b).to_array(), a.to_array() ^ b.to_array())
    assert a ^ b ^ b == a
    assert a != b
    assert a != BitMatrix.zeros(9, 78)


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 200), (0, 64), (64, 200), (64, 128), (3, 3), (5, 70), (63, 65), (70, 199)]
)
def test_slices_are_those_of_the_array(start, stop):
    matrix = BitMatrix.random(20, 200, seed=1)
    assert np.array_equal(matrix[3:17:2, start:stop].to_array(), matrix.to_array()[3:17:2, start:stop])
    assert np.array_equal(matrix[..., start:stop].to_array(), matrix.to_array()[..., start:stop])


def test_files_round_trip_and_others_are_refused(tmp_path):
    matrix = BitMatrix.random(4, 11, 130, seed=5)
    matrix.save(tmp_path / "a.npz")
    assert BitMatrix.load(tmp_path / "a.npz") == matrix
    (tmp_path / "a.npz").write_bytes(b"not an archive")
    np.savez(tmp_path / "b.npz", words=np.zeros((2, 2), np.uint64))
    np.savez(tmp_path / "c.npz", words=np.ones((2, 1), np.uint64), cols=0, bitorder="little")
    (tmp_path / "d.npz").write_bytes((tmp_path / "c.npz").read_bytes()[:-5])
    for name in "abcd":
        refuses_with(lcma.SchemeFormatError, "is not a bit matrix", BitMatrix.load, tmp_path / f"{name}.npz")
    refuses_with(lcma.SchemeFormatError, "can't be read", BitMatrix.load, tmp_path / "none.npz")


def test_matrices_that_do_not_fit_are_refused():
    matrix = BitMatrix.zeros(2, 3)
    refuses("sizes differ", lambda: matrix ^ BitMatrix.zeros(3, 3))
    refuses("inner sizes differ", lambda: matrix @ matrix)
    refuses("by slices", lambda: matrix[0])

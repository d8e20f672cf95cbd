"""Exact products over GF(p), Z/n and Z: names of rings, bounds, refusals, random cases, tensors, plans for a GPU."""

import math
import random
import sys
from dataclasses import replace
from unittest.mock import MagicMock

import numpy as np
import pytest

import lcma
from lcma.kernels import Request, decision_for
from lcma.kernels.arrays import read_only
from lcma.kernels.cpu.workspace import empty_aligned
from lcma.kernels.exact.combine import sum_blocks
from lcma.kernels.exact.integers import LIMITS, IntegerCore, _limb_sum, _width, float_core
from lcma.kernels.exact.level import corners
from lcma.kernels.exact.limbs import split_rows
from lcma.kernels.exact.naive import naive_product, product_by_parts
from lcma.kernels.exact.schemes import ExactMap, given_chain
from lcma.kernels.exact.tensors import TensorSums
from lcma.kernels.planning.profile import GemmRate, Profile
from lcma.kernels.planning.wisdom import class_of
from lcma.kernels.request import BITS
from lcma.kernels.ring import GF2, INTEGERS, ExactRing, exact_ring
from lcma.schemes_db import Q, Scheme, Target

from ...refusal import read_beside, refuses
from ..cases import each
from ..gpu import H200
from .fuzz_products import RINGS, main, one_case

P61 = (1 << 61) - 1


@each("text, modulus, name", __file__, "rings")
def test_rings_have_names(text, modulus, name):
    ring = exact_ring(text)
    assert (ring.modulus, ring.name) == (modulus, name)
    assert exact_ring(name) == ring


def test_strong_pseudoprimes_are_composite():
    for number in (3215031751, 3474749660383, 341550071728321, 3825123056546413051):
        assert not ExactRing(number).is_field


@pytest.mark.parametrize("kind", RINGS)
def test_random_cases_are_exact(kind):
    outcomes = [one_case(random.Random(f"test {kind} {number}"), kind) for number in range(40)]
    assert set(outcomes) <= {"exact", "refused"}
    assert outcomes.count("exact") > 26


@pytest.mark.parametrize("shapes", [((2, 5, 40), (40, 3)), ((5, 40), (40, 600)), ((0, 4), (4, 600))])
def test_the_truth_of_larger_cases_is_that_of_python_integers(shapes):
    rng = np.random.default_rng(3)
    low, high = -(1 << 63), (1 << 63) - 1
    a, b = (rng.integers(low, high, shape, endpoint=True) for shape in shapes)
    a[..., :1, :], a[..., 1:2, :], b[:, 0] = low, high, low
    found = product_by_parts(a, b)
    assert found.shape == (*a.shape[:-1], b.shape[1])
    assert (found == naive_product(a, b, INTEGERS)).all()
    # Entries whose parts above the first are 0.
    assert (product_by_parts(a & 1023, b & 1023) == naive_product(a & 1023, b & 1023, INTEGERS)).all()


def test_the_script_counts_cases(capsys):
    assert main(3, 1) == 0
    assert capsys.readouterr().out.count("3 cases") == len(RINGS)


@pytest.mark.parametrize("modulus", [3, 1021, 32749, 8388593, (1 << 31) - 1, P61, 1 << 62])
@pytest.mark.parametrize("scheme", ["auto", "strassen", "4x4x4:49"])
def test_products_longer_than_a_part_are_exact(modulus, scheme):
    rng = np.random.default_rng(modulus % 997)
    a, b = rng.integers(0, modulus, (5, 3000)), rng.integers(0, modulus, (3000, 4))
    a[0], b[:, 0] = modulus - 1, modulus - 1
    ring = ExactRing(modulus)
    assert (lcma.matmul(a, b, scheme, ring=ring) == naive_product(a, b, ring)).all()


def test_fractions_run_where_they_have_an_inverse_and_sums_are_reduced_where_the_bound_asks():
    a = np.arange(16).reshape(4, 4)
    u, v, w = (factor.dense for factor in lcma.resolve("strassen")[0].factors)
    scheme = Scheme.from_arrays(Target.general(2, 2, 2), 2 * u, v, w, Q, denominators=(1, 2, 1))
    ring = ExactRing(101)
    assert (lcma.matmul(a, a, scheme, ring=ring) == naive_product(a, a, ring)).all()
    refuses("has no inverse in Z/10", lcma.matmul, a, a, scheme, ring="Z/10")
    refuses("integer coefficients", lcma.matmul, a, a, scheme, ring="Z")
    levels = given_chain("strassen", 2, ExactRing(32749)).maps
    small = float_core(levels, (1024, 1024, 1024), "float64", 32749, (16375, 16375), True)
    assert not small.arithmetic.moduli[0]
    assert small.inner.pure
    large = float_core(levels, (1024, 1024, 1024), "float64", 8388593, (4194297, 4194297), True)
    assert large.arithmetic.moduli[0]
    assert not large.inner.pure


@pytest.mark.parametrize("modulus", [3, 1021, 8388593, (1 << 31) - 1, P61])
def test_no_partial_sum_exceeds_what_a_float_holds(modulus):
    core = IntegerCore((64, 4096, 64), ExactRing(modulus), (1 << 63, 1 << 63))
    limit = LIMITS[core.dtype.name]
    if core.limbs == 1:
        assert core.product.depth * (modulus // 2) ** 2 < limit
    else:
        assert core.depth * _limb_sum(core.entry_bounds, core.limbs) ** 2 <= limit
        assert core.limbs * core.width > modulus.bit_length()


@pytest.mark.parametrize("limbs", [2, 3, 4])
@pytest.mark.parametrize("modulus", [(1 << 31) - 1, (1 << 40) - 87, P61, 1 << 62, 0])
def test_limbs_and_sums_of_two_stay_below_their_bound(modulus, limbs):
    bound = modulus // 2 + 1 if modulus else 1 << 63
    width = _width((bound, bound), limbs)
    low = 1 << (width - 1)
    # Digits at both ends of their range, and residues at theirs.
    ends = [sum(sign * low << width * place for place in range(limbs)) for sign in (1, -1)]
    ends += [sum((low - (sign + 1) // 2) * sign << width * place for place in range(limbs)) for sign in (1, -1)]
    ends += [bound - 1, -(bound - 1), bound >> 1, low, -low, low - 1]
    held = [x for x in ends if abs(x) < bound]
    rng = np.random.default_rng(0)
    matrix = np.concatenate([np.array(held, np.int64), rng.integers(-(bound - 1), bound - 1, 4000)])[None]
    out = np.empty((limbs * (limbs + 1) // 2, *matrix.shape))
    split_rows(read_only(matrix), limbs, width, modulus, out, 0, 1)
    assert abs(out).max() <= _limb_sum((bound, bound), limbs)
    total = sum(
        part[0].astype(np.int64).astype(object) * (1 << width * place) for place, part in enumerate(out[:limbs])
    )
    assert ((total - matrix[0]) % modulus == 0).all() if modulus else (total == matrix[0]).all()


def test_the_longest_product_of_three_limbs_is_exact():
    """2048 products of two sums of limbs reach 2^53, which a float64 holds."""
    x = (1 << 20) * (1 + (1 << 21)) + (1 << 59)
    a = np.full((2, 2048), x)
    assert IntegerCore((2, 2048, 2), ExactRing(P61), (P61, P61)).depth == 2048
    for one, other in ((a, a), (a, -a), (-a, -a)):
        found = lcma.matmul(one, other.T, ring=f"GF({P61})", strategy="leaf")
        assert (found == 2048 * int(one[0, 0]) * int(other[0, 0]) % P61).all()


@pytest.mark.parametrize(
    ("dtype", "modulus"),
    [(np.uint64, 0), *((dtype, modulus) for dtype in (np.float32, np.float64) for modulus in (0, 251))],
)
@pytest.mark.parametrize(
    ("rows", "width"), [(3, 1), (2, 7), (2, 8), (3, 13), (2, 64), (1, 150), (2060, 512), (1030, 511)]
)
def test_sums_of_blocks_are_right(dtype, modulus, rows, width):
    """The largest are written past the caches; those of other lengths end in an overlapping or a short step."""
    rng = np.random.default_rng(0)
    low, high = (0, 1 << 63) if dtype == np.uint64 else (-1000, 1001)
    matrix = rng.integers(low, high, (2 * rows, 2 * width)).astype(dtype)
    starts, places, values = np.array([0, 1, 4, 4, 6]), np.array([2, 0, 1, 3, 1, 2]), np.array([1, -1, 2, 1, 1, -3])
    sums = empty_aligned((4, rows, width), np.dtype(dtype))
    inside, stacked, block = corners(2, 2, rows, width), corners(4, 1, rows, 0), (rows, width)
    slabs, factors = sums.reshape(-1, width), values.astype(dtype)
    sum_blocks(read_only(matrix), inside, slabs, stacked, block, starts, places, factors, dtype(modulus), 0, rows)
    made = empty_aligned((2 * rows - 1, 2 * width - (width % 8 > 0)), np.dtype(dtype))
    arguments = (starts[[0, 1, 2, 4, 4]], places % 4, factors)
    sum_blocks(read_only(slabs), stacked, made, inside, block, *arguments, dtype(modulus), 0, rows)

    def total(blocks, part):
        if dtype == np.uint64:
            return np.bitwise_xor.reduce(blocks, axis=0, initial=0) if blocks else np.zeros((), dtype)
        x = sum((x.astype(np.float64) * y for x, y in zip(blocks, values[part], strict=True)), np.zeros(()))
        return x - modulus * np.rint(x / modulus) if modulus else x

    for r in range(4):
        part = slice(starts[r], starts[r + 1])
        blocks = [matrix[p // 2 * rows :, p % 2 * width :][:rows, :width] for p in places[part]]
        assert (sums[r] == total(blocks, part)).all()
        part = slice(arguments[0][r], arguments[0][r + 1])
        wanted = np.broadcast_to(total([sums[p] for p in places[part]], part), (rows, width))
        block = made[r // 2 * rows :, r % 2 * width :][:rows, :width]
        assert (block == wanted[: len(block), : block.shape[1]]).all()


def test_operands_that_may_not_be_written_need_no_code_of_their_own():
    arrays = list(np.random.default_rng(0).integers(0, 1021, (2, 8, 8)))
    bits = [lcma.BitMatrix.random(130, 130, seed=seed) for seed in (1, 2)]
    cases = (split_rows, "GF(1021)", arrays, arrays), (sum_blocks, "GF(2)", bits, [matrix.words for matrix in bits])
    for kernel, ring, operands, memory in cases:
        product = lcma.matmul(*operands, "strassen", ring=ring)
        compiled = set(kernel.overloads)
        for array in memory:
            array.setflags(write=False)
        assert np.array_equal(lcma.matmul(*operands, "strassen", ring=ring), product)
        assert set(kernel.overloads) == compiled


def test_integers_are_words_or_python_integers_or_within_a_stated_magnitude():
    a = np.full((2, 4), 1 << 31)
    assert lcma.matmul(a, a.T, ring="Z", out_dtype="object")[0, 0] == 1 << 64
    words = lcma.matmul(a, a.T, ring="Z", out_dtype="int128")
    assert words.shape == (2, 2, 2)
    assert words[0, 0].tolist() == [0, 1]
    a = np.full((4, 4), 9)
    assert (lcma.matmul(a, a, ring="Z", max_abs=9) == a @ a).all()
    refuses("is a bit matrix", lcma.matmul, lcma.BitMatrix.zeros(2, 2), lcma.BitMatrix.zeros(2, 2), ring="GF(3)")
    a = np.arange(36).reshape(6, 6)
    wanted = naive_product(a.T, a[:, ::-1], ExactRing(1021))
    out = np.zeros((6, 6), np.int64)
    assert lcma.matmul(a.T, a[:, ::-1], ring="GF(1021)", out=out) is out
    assert (out == wanted).all()


@pytest.mark.parametrize("dtype", [
    *(np.int8, np.int64, np.uint32, np.bool_),
    *(pytest.param(one, marks=pytest.mark.slow) for one in (np.int16, np.int32, np.uint8, np.uint16)),
])  # fmt: skip
def test_every_dtype_of_integers(dtype):
    rng = np.random.default_rng(1)
    info = np.iinfo(dtype) if dtype is not np.bool_ else None
    low, high = (0, 1) if info is None else (max(info.min, -(1 << 28)), min(info.max, 1 << 28))
    a, b = (rng.integers(low, high, shape, endpoint=True).astype(dtype) for shape in ((9, 7), (7, 5)))
    for ring in ("Z", "GF(1021)"):
        wanted = naive_product(a.astype(np.int64), b.astype(np.int64), exact_ring(ring))
        for scheme in ("auto", "strassen"):
            assert (lcma.matmul(a, b, scheme, ring=ring) == wanted).all()


def test_the_ring_is_part_of_the_class():
    plain = Request(8, 8, 8, "int64")
    exact = Request(8, 8, 8, "int64", ring=INTEGERS)
    assert "over" not in class_of(plain)
    assert class_of(exact).endswith(", over Z")
    assert class_of(Request(8, 8, 8, "bit", ring=GF2)) != class_of(exact)
    assert not exact.is_dense


@pytest.mark.parametrize(("scheme", "ring", "error_log2"), [("4x4x4:47", "Z2", -20), ("laderman", "GF(2^31-1)", -100)])
def test_traces_of_the_executors_are_accepted(scheme, ring, error_log2):
    target, modulus = lcma.resolve(scheme)[0].target, exact_ring(ring).modulus

    def right(a, b):
        return lcma.matmul(a, b, scheme, ring=ring)

    def wrong(a, b):
        c = right(a, b)
        c[-1, -1] = (c[-1, -1] + a[0, 0]) % modulus
        return c

    assert lcma.check_traced(right, target, modulus=modulus, error_log2=error_log2, seed=1).ok
    assert not lcma.check_traced(wrong, target, modulus=modulus, error_log2=error_log2, seed=1).ok


RATES = tuple(GemmRate("float64", n, n, n, 4e10, mode) for n in (64, 4096) for mode in ("whole", "tasks"))
PROFILE = Profile("flat", "test", (), RATES, 2e10, 2e10, add_rate=1e12)


@pytest.mark.parametrize("most", [5_500_000_000, 6_500_000_000])
def test_schemes_that_fit_are_chosen_where_the_best_do_not(machine_of, most):
    request = Request(8192, 8192, 8192, "int64", ring=exact_ring("GF(8388593)"))
    free = decision_for(request, machine=machine_of(PROFILE, kept_bytes=math.inf, free_bytes=lambda: math.inf)).plan
    assert free.workspace > most
    for plan in (
        decision_for(replace(request, max_workspace=most), machine=machine_of(PROFILE, kept_bytes=math.inf)).plan,
        decision_for(request, machine=machine_of(PROFILE, kept_bytes=most)).plan,
    ):
        assert plan.workspace <= most
        assert len(plan.candidate.source.levels) > 1
        assert plan.seconds <= 1.2 * free.seconds


def test_tensors_are_multiplied_as_arrays_and_small_blocks_are_named_or_tuned_only():
    torch = pytest.importorskip("torch")
    a = torch.arange(12).reshape(3, 4)
    assert (lcma.matmul(a, a.T, ring="GF(7)") == a @ a.T % 7).all()
    assert (lcma.matmul(a, a.T, "strassen", ring="Z2") == a @ a.T % 2).all()
    named = decision_for(Request(16384, 16384, 16384, "bit", ring=GF2, device="cuda"), "4x4x4:47")
    assert named.plan.candidate.strategy == "scheme"
    assert named.plan.seconds is None


def test_kernels_of_sums_get_all_operands_on_the_device_of_the_blocks(monkeypatch):
    """A processor's memory would be refused by a GPU, and the interpreter takes anything."""
    torch = pytest.importorskip("torch")
    kernels = MagicMock()
    monkeypatch.setitem(sys.modules, "lcma.kernels.exact.triton_kernels", kernels)
    blocks = torch.zeros((6, 5), dtype=torch.int64, device="meta")
    sums = ExactMap(np.array([0, 2]), np.array([0, 1]), np.array([1, 1]))
    source, target = (blocks, corners(2, 1, 3, 0)), (blocks[:3], corners(1, 1, 3, 5))
    TensorSums().combine(0, sums, source, target, (3, 5), 1)
    given = kernels.sum_blocks.__getitem__.return_value.call_args.args
    assert [x.device.type for x in given if isinstance(x, torch.Tensor)] == ["meta"] * 7


@pytest.mark.parametrize(
    ("ring", "strategy"), [("GF(1021)", "digits"), ("GF(8388593)", "digits"), ("GF(2^61-1)", "leaf")]
)
def test_digits_and_float64_compete_by_prices(ring, strategy):
    request = Request(8192, 8192, 8192, "int64", ring=exact_ring(ring), device="cuda")
    assert decision_for(request).plan.candidate.strategy == strategy


def test_the_bench_moves_operands_there_and_back_and_finds_wrong_entries():
    torch = pytest.importorskip("torch")
    from lcma.kernels.exact.bench import ExactBench, ExactTensorBench, to_host, to_tensor

    for request in (Request(5, 70, 9, "bit", ring=GF2), Request(5, 70, 9, "int64", ring=exact_ring("GF(101)"))):
        a, b, _ = ExactBench().operands(request, 0)
        found = to_host(to_tensor(a, "cpu"), 70, request)
        assert (found == a) if request.dtype == "bit" else np.array_equal(found, a)
        error_of = ExactTensorBench().errors(request, *(to_tensor(x, "cpu") for x in (a, b)))
        product = to_tensor(lcma.matmul(a, b, ring=request.ring), "cpu")
        assert error_of(product) == 0
        product[0, 0] ^= 1
        assert error_of(product) > 0
    assert torch.is_tensor(product)


ROWS = read_beside(__file__, "measured_h200.json")
"""Ring, size, scheme, strategy, milliseconds."""


def request_over(ring, size):
    return Request(size, size, size, BITS if ring == "Z2" else "int64", device="cuda", ring=exact_ring(ring))


@pytest.mark.parametrize(("ring", "size", "scheme", "strategy", "milliseconds"), ROWS)
def test_products_take_what_is_predicted(ring, size, scheme, strategy, milliseconds):
    pytest.importorskip("torch")
    levels = scheme.split("/")
    named = levels if len(levels) > 1 else scheme
    plan = decision_for(request_over(ring, size), named, strategy=strategy, machine=H200).plan
    assert 1e3 * plan.seconds == pytest.approx(milliseconds, rel=0.1 if ring == "Z2" else 0.13)


@each("ring, size, candidate", __file__, "fastest")
def test_the_fastest_that_was_measured_is_chosen(ring, size, candidate):
    pytest.importorskip("torch")
    assert str(decision_for(request_over(ring, size), machine=H200).plan.candidate) == candidate
